package metric

import "strings"

// object is a Kafka object name taken apart.
type object struct {
	domain, kind, name string
	attribute          bool // name is an attribute of a bean without a name of its own
}

// parse reads domain:type=T,name=N or domain:type=T,attribute=A. A text without a colon is a
// Prometheus name already.
func parse(s string) object {
	domain, rest, ok := strings.Cut(s, ":")
	if !ok {
		return object{name: s}
	}
	o := object{domain: domain}
	for _, part := range strings.Split(rest, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "type":
			o.kind = value
		case "name":
			o.name = value
		case "attribute":
			o.name, o.attribute = value, true
		default:
			panic("metric: " + s + ": tags are passed as labels beside the object name")
		}
	}
	if o.kind == "" || o.name == "" {
		panic("metric: " + s + " has no type or no name")
	}
	return o
}

// Name is the Prometheus name of a Kafka object name, as the widely used JMX-exporter rules have it:
//
//	…,name=BytesInPerSec       …_bytesin_total      a meter: its count
//	…,name=IdlePercent         …_idle_percent       a share of one
//	…,name=Value               …_value              a gauge, and the quantiles of a histogram
//	…,attribute=current-epoch  …_current_epoch
//
// Letters become small, everything but letters and digits becomes an underscore.
func Name(s string) string {
	o := parse(s)
	if o.domain == "" {
		return o.name
	}
	name := o.name
	suffix := ""
	if !o.attribute {
		if before, _, ok := cutWord(name, "PerSec"); ok {
			name, suffix = before, "_total"
		} else if before, _, ok := cutWord(name, "Percent"); ok {
			name, suffix = before, "_percent"
		}
	}
	return clean(o.domain+"_"+o.kind+"_"+name) + suffix
}

// cutWord cuts name before the last word that begins with w, if one does.
func cutWord(name, w string) (before, after string, ok bool) {
	i := strings.LastIndex(name, w)
	if i <= 0 {
		return "", "", false
	}
	return name[:i], name[i+len(w):], true
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_':
			return r
		}
		return '_'
	}, s)
}

// labelName makes a Prometheus label of a tag: client-id becomes client_id.
func labelName(tag string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, tag)
}

// quotaKinds are the beans of client quotas; with a user or client id they share the family
// kafka_server_quota_… and differ by the label resource.
var quotaKinds = map[string]bool{"Produce": true, "Fetch": true, "Request": true, "ControllerMutation": true}

// place is the family an object with these labels belongs to, and the labels it adds.
func place(s string, labelNames []string) (family string, extra []string) {
	o := parse(s)
	if o.domain == "kafka.server" && quotaKinds[o.kind] && o.attribute {
		for _, l := range labelNames {
			if l == "user" || l == "client-id" || l == "clientId" {
				return clean("kafka_server_quota_" + o.name), []string{"resource", o.kind}
			}
		}
	}
	return Name(s), nil
}
