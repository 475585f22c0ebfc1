package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// SecurityProtocol numbers are those of the metadata log (K-82).
type SecurityProtocol int16

const (
	Plaintext     SecurityProtocol = 0
	SSL           SecurityProtocol = 1
	SASLPlaintext SecurityProtocol = 2
	SASLSSL       SecurityProtocol = 3
)

var protocolNames = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

func (p SecurityProtocol) String() string {
	if p < 0 || int(p) >= len(protocolNames) {
		return "UNKNOWN"
	}
	return protocolNames[p]
}

// TLS reports whether connections are encrypted, SASL whether they log in.
func (p SecurityProtocol) TLS() bool  { return p == SSL || p == SASLSSL }
func (p SecurityProtocol) SASL() bool { return p == SASLPlaintext || p == SASLSSL }

func parseProtocol(name, key string) (SecurityProtocol, error) {
	if i := slices.Index(protocolNames, strings.ToUpper(name)); i >= 0 {
		return SecurityProtocol(i), nil
	}
	return 0, fmt.Errorf("Invalid security protocol `%s` defined in %s", name, key)
}

// Listener is one entry of listeners or advertised.listeners.
type Listener struct {
	Name     string // normalised: upper case
	Host     string // "" is every address
	Port     int32
	Protocol SecurityProtocol
}

func (l Listener) String() string {
	return l.Name + "://" + HostPort{l.Host, l.Port}.String()
}

// Voter is one entry of controller.quorum.voters.
type Voter struct {
	ID   model.NodeID
	Host string
	Port int32
}

// HostPort is one entry of controller.quorum.bootstrap.servers.
type HostPort struct {
	Host string
	Port int32
}

// String is host:port, with brackets around an IPv6 host.
func (h HostPort) String() string {
	host := h.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(h.Port))
}

// hostPortForm is the form Kafka looks for at the beginning of an address.
var hostPortForm = regexp.MustCompile(`^(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)`)

// hostPort cuts an address; ok false means neither host nor port can be told.
func hostPort(s string) (HostPort, bool) {
	m := hostPortForm.FindStringSubmatch(s)
	if m == nil || m[0] != s {
		return HostPort{}, false
	}
	port, err := strconv.ParseInt(m[2], 10, 32)
	if err != nil {
		return HostPort{}, false
	}
	return HostPort{m[1], int32(port)}, true
}

func parseVoters(entries []string) ([]Voter, error) {
	const form = ". Each entry should be in the form `{id}@{host}:{port}`."
	var out []Voter
	for _, e := range entries {
		id, address, ok := strings.Cut(e, "@")
		if !ok || address == "" || strings.Contains(address, "@") {
			return nil, errors.New("Invalid configuration value for controller.quorum.voters" + form)
		}
		n, isInt := javaInt(id, 32)
		if !isInt {
			return nil, fmt.Errorf("Failed to parse voter ID as an integer from %s", id)
		}
		hp, ok := hostPort(address)
		if !ok {
			return nil, fmt.Errorf("Failed to parse host name from entry %s for the configuration controller.quorum.voters%s", e, form)
		}
		if hp.Port > 65535 {
			return nil, fmt.Errorf("port out of range:%d", hp.Port)
		}
		v := Voter{model.NodeID(n), hp.Host, hp.Port}
		if i := slices.IndexFunc(out, func(o Voter) bool { return o.ID == v.ID }); i >= 0 {
			out[i] = v
		} else {
			out = append(out, v)
		}
	}
	return out, nil
}

func parseBootstrap(entries []string) ([]HostPort, error) {
	var out []HostPort
	for _, e := range entries {
		hp, ok := hostPort(e)
		if !ok {
			return nil, fmt.Errorf("Failed to parse host name from %s for the configuration controller.quorum.bootstrap.servers. Each entry should be in the form \"{host}:{port}\"", e)
		}
		if hp.Port > 65535 {
			return nil, fmt.Errorf("port out of range:%d", hp.Port)
		}
		out = append(out, hp)
	}
	return out, nil
}

var listenerForm = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// parseListeners reads NAME://host:port entries. bind: they are opened, so two of them may share a
// port only as IPv4 and IPv6.
func parseListeners(entries []string, protocols map[string]SecurityProtocol, bind bool) ([]Listener, error) {
	fail := func(format string, args ...any) ([]Listener, error) {
		return nil, fmt.Errorf("Error creating broker listeners from '[%s]': %s", strings.Join(entries, ", "), fmt.Sprintf(format, args...))
	}
	var out []Listener
	for _, e := range entries {
		m := listenerForm.FindStringSubmatch(e)
		if m == nil {
			return fail("Unable to parse %s to a broker endpoint", e)
		}
		name := strings.ToUpper(m[1])
		port, err := strconv.ParseInt(m[3], 10, 32)
		if err != nil || port > 65535 || port < -1 || bind && port < 0 {
			return fail("%s is not a port between 0 and 65535", m[3])
		}
		protocol, ok := protocols[name]
		if !ok {
			return fail("No security protocol defined for listener %s", name)
		}
		if slices.ContainsFunc(out, func(l Listener) bool { return l.Name == name }) {
			return fail("Each listener must have a different name, listeners: [%s]", strings.Join(entries, ", "))
		}
		out = append(out, Listener{name, m[2], int32(port), protocol})
	}
	if bind {
		if why := portClash(out); why != "" {
			return fail("%s", why)
		}
	}
	return out, nil
}

// portClash finds listeners that cannot both be opened: the same port, unless one of exactly two
// is an IPv4 address and the other an IPv6 one.
func portClash(list []Listener) string {
	byPort := map[int32][]Listener{}
	for _, l := range list {
		if l.Port != 0 {
			byPort[l.Port] = append(byPort[l.Port], l)
		}
	}
	for _, l := range list {
		same := byPort[l.Port]
		if len(same) < 2 {
			continue
		}
		if len(same) == 2 {
			a, errA := netip.ParseAddr(same[0].Host)
			b, errB := netip.ParseAddr(same[1].Host)
			if errA == nil && errB == nil && a.Is4() != b.Is4() {
				continue
			}
			if errA == nil && errB == nil {
				return fmt.Sprintf("If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, port: %d", l.Port)
			}
		}
		return fmt.Sprintf("Each listener must have a different port unless exactly one listener has an IPv4 address and the other IPv6 address, port: %d", l.Port)
	}
	return ""
}

// csvMap reads key:value entries, cut at the last colon.
func csvMap(key, s string) (map[string]string, error) {
	out := map[string]string{}
	if s == "" {
		return out, nil
	}
	list := splitList(s)
	for len(list) > 0 && list[len(list)-1] == "" { // Java's split drops empty entries at the end
		list = list[:len(list)-1]
	}
	for _, e := range list {
		i := strings.LastIndex(e, ":")
		if i < 0 {
			return nil, fmt.Errorf("Error parsing configuration property '%s': entry %q has no colon", key, e)
		}
		out[javaTrim(e[:i])] = javaTrim(e[i+1:])
	}
	return out, nil
}

// protocolMap is the effective listener.security.protocol.map: what is written, or Kafka's default
// plus PLAINTEXT for controller listeners when nothing says TLS or SASL.
func protocolMap(written string, isSet bool, controllerNames, listeners []string) (map[string]SecurityProtocol, error) {
	const key = "listener.security.protocol.map"
	entries, err := csvMap(key, written)
	if err != nil {
		return nil, err
	}
	out := map[string]SecurityProtocol{}
	for name, protocol := range entries {
		p, err := parseProtocol(protocol, key)
		if err != nil {
			return nil, err
		}
		upper := strings.ToUpper(name)
		if _, twice := out[upper]; twice {
			return nil, fmt.Errorf("%s names listener %s twice", key, upper)
		}
		out[upper] = p
	}
	if isSet {
		return out, nil
	}
	secure := func(name string) bool { return slices.Contains(protocolNames[1:], name) }
	if slices.ContainsFunc(controllerNames, secure) {
		return out, nil
	}
	for _, l := range listeners {
		name, _, ok := strings.Cut(l, ":")
		if !ok {
			return nil, fmt.Errorf("Unable to parse a listener name from %s", l)
		}
		if secure(strings.ToUpper(name)) {
			return out, nil
		}
	}
	for _, name := range controllerNames {
		out[name] = Plaintext
	}
	return out, nil
}
