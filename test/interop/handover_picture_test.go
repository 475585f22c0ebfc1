package interop

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"samsa/test/harness"
)

// picture is what a cluster shows of itself, as one line per fact, and the bytes of every partition.
type picture struct {
	facts map[string]string
	logs  map[string][]byte // whole batches, from the log start to the end
}

func (p picture) set(value string, key string, args ...any) {
	p.facts[fmt.Sprintf(key, args...)] = value
}

// changes compares with what the other program shows of the same directories. Both programs write to the
// coordinators' topics by themselves, so those have only to begin with what was there.
func (p picture) changes(now picture) string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, key := range slices.Sorted(maps.Keys(p.facts)) {
		got, ok := now.facts[key]
		if !ok && strings.HasPrefix(key, "kafka only: ") && !now.kafka() {
			continue
		}
		if want := p.facts[key]; got != want {
			note("%s: %q, was %q", key, got, want)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now.facts)) {
		if _, ok := p.facts[key]; !ok && !(strings.HasPrefix(key, "kafka only: ") && !p.kafka()) {
			note("%s: %q, was not there", key, now.facts[key])
		}
	}
	for _, tp := range slices.Sorted(maps.Keys(p.logs)) {
		was, is := p.logs[tp], now.logs[tp]
		switch {
		case strings.HasPrefix(tp, "__"):
			if !bytes.HasPrefix(is, was) {
				note("%s: %d bytes no longer begin with the %d that were there", tp, len(is), len(was))
			}
		case !bytes.Equal(is, was):
			note("%s: %d bytes, other than the %d that were there", tp, len(is), len(was))
		}
	}
	return strings.Join(out, "\n")
}

// without leaves a topic out.
func (p picture) without(topic string) {
	maps.DeleteFunc(p.facts, func(key, _ string) bool { return strings.Contains(key, topic) })
	maps.DeleteFunc(p.logs, func(key string, _ []byte) bool { return strings.HasPrefix(key, topic) })
}

// kafka reports whether Apache Kafka showed it.
func (p picture) kafka() bool {
	_, ok := p.facts["kafka only: "]
	return ok
}

// dirOf is where a partition's files are.
func (p picture) dirOf(n *harness.Node, tp string) string {
	dir, _, _ := strings.Cut(p.facts["directory of "+tp], ",")
	return filepath.Join(n.Dir, dir, tp)
}

// picture looks at everything.
func (w *work) picture() picture {
	w.t.Helper()
	p := picture{facts: map[string]string{}, logs: map[string][]byte{}}
	w.disconnect()
	w.connect(w.program) // a new client remembers nothing
	topics, err := w.adm.ListTopicsWithInternal(w.ctx())
	w.must(err, "listing topics")
	names := topics.Names()
	var set kadm.TopicsSet
	w.ids = map[string][16]byte{}
	for _, topic := range topics.Sorted() {
		w.ids[topic.Topic] = topic.ID
		p.set(topic.ID.String(), "id of %s", topic.Topic)
		p.set(fmt.Sprint(topic.IsInternal, " ", len(topic.Partitions)), "internal, partitions of %s", topic.Topic)
		for _, part := range topic.Partitions.Sorted() {
			set.Add(topic.Topic, part.Partition)
			p.set(fmt.Sprint(part.Err, part.Leader, part.Replicas, part.ISR), "replicas of %s-%d", topic.Topic, part.Partition)
		}
	}
	w.pictureLogs(p, set)
	w.pictureOffsets(p, names)
	w.pictureProducers(p, set)
	w.pictureConfigs(p, names)
	w.pictureGroups(p)
	w.pictureDirs(p, set)
	if w.program == "kafka" {
		w.pictureKafka(p)
	}
	return p
}

// pictureLogs reads every partition, and what a read_committed consumer is told of it.
func (w *work) pictureLogs(p picture, set kadm.TopicsSet) {
	w.t.Helper()
	starts, err := w.adm.ListStartOffsets(w.ctx())
	w.must(err, "log starts")
	for topic, parts := range set {
		for part := range parts {
			start := int64(0)
			if o, ok := starts.Lookup(topic, part); ok {
				w.must(o.Err, "log start of %s-%d", topic, part)
				start = o.Offset
			}
			name := fmt.Sprintf("%s-%d", topic, part)
			log, last := w.read(topic, part, start)
			p.logs[name] = log
			if strings.HasPrefix(topic, "__") {
				continue
			}
			p.set(fmt.Sprint(start), "log start of %s", name)
			p.set(fmt.Sprint(last.HighWatermark), "end of %s", name)
			p.set(fmt.Sprint(last.LastStableOffset), "last stable offset of %s", name)
			// From the log start with read_committed: the aborted transactions a consumer has to leave out.
			committed := w.fetch(topic, part, start, 1)
			var aborted []string
			for _, a := range committed.AbortedTransactions {
				aborted = append(aborted, fmt.Sprintf("%d from %d", a.ProducerID, a.FirstOffset))
			}
			slices.Sort(aborted)
			p.set(strings.Join(aborted, ", "), "aborted in the first fetch of %s", name)
		}
	}
}

func (w *work) pictureOffsets(p picture, names []string) {
	w.t.Helper()
	show := func(what string, list kadm.ListedOffsets, err error) {
		w.must(err, "%s", what)
		list.Each(func(o kadm.ListedOffset) {
			// Kafka finds nothing by time where the first segment that is new enough is wholly below the log start.
			if !strings.HasPrefix(o.Topic, "__") && (o.Topic != "cut" || !strings.HasPrefix(what, "first after")) {
				p.set(fmt.Sprintf("offset %d time %d epoch %d %v", o.Offset, o.Timestamp, o.LeaderEpoch, o.Err), "%s of %s-%d", what, o.Topic, o.Partition)
			}
		})
	}
	list, err := w.adm.ListCommittedOffsets(w.ctx())
	show("committed end", withoutEpoch(list), err)
	list, err = w.adm.ListMaxTimestampOffsets(w.ctx())
	show("newest time", list, err)
	for i := range 12 {
		at := w.base + int64(i)*day/2 + 500
		list, err = w.adm.ListOffsetsAfterMilli(w.ctx(), at)
		list.Each(func(o kadm.ListedOffset) { // kadm asks for the end where there is nothing later
			if o.Timestamp == -1 {
				o.LeaderEpoch = -1
				list[o.Topic][o.Partition] = o
			}
		})
		show(fmt.Sprintf("first after +%d ms", at-w.base), list, err)
	}
	_ = names
}

// withoutEpoch: the end of a log is reported with the epoch of the leader of now.
func withoutEpoch(list kadm.ListedOffsets) kadm.ListedOffsets {
	for _, parts := range list {
		for i, o := range parts {
			o.LeaderEpoch = -1
			parts[i] = o
		}
	}
	return list
}

func (w *work) pictureProducers(p picture, set kadm.TopicsSet) {
	w.t.Helper()
	all, err := w.adm.DescribeProducers(w.ctx(), set)
	w.must(err, "describing producers")
	for _, topic := range all {
		for _, part := range topic.Partitions {
			w.must(part.Err, "describing producers of %s-%d", part.Topic, part.Partition)
			if strings.HasPrefix(part.Topic, "__") {
				continue
			}
			for _, id := range part.ActiveProducers.Sorted() {
				p.set(fmt.Sprintf("epoch %d sequence %d time %d coordinator %d open since %d", id.ProducerEpoch, id.LastSequence, id.LastTimestamp, id.CoordinatorEpoch, id.CurrentTxnStartOffset),
					"producer %d of %s-%d", id.ProducerID, part.Topic, part.Partition)
			}
		}
	}
}

func (w *work) pictureConfigs(p picture, names []string) {
	w.t.Helper()
	topics, err := w.adm.DescribeTopicConfigs(w.ctx(), names...)
	w.must(err, "describing topic configs")
	for _, r := range topics {
		w.must(r.Err, "describing configs of %s", r.Name)
		for _, c := range r.Configs {
			p.set(fmt.Sprint(c.Source, " ", c.MaybeValue()), "config %s of %s", c.Key, r.Name)
		}
	}
	one, err := w.adm.DescribeBrokerConfigs(w.ctx(), 1)
	w.must(err, "describing broker configs")
	cluster, err := w.adm.DescribeBrokerConfigs(w.ctx())
	w.must(err, "describing cluster configs")
	for _, r := range append(one, cluster...) {
		w.must(r.Err, "describing configs of broker %s", r.Name)
		for _, c := range r.Configs {
			if c.Source == kmsg.ConfigSourceDynamicBrokerConfig || c.Source == kmsg.ConfigSourceDynamicDefaultBrokerConfig {
				p.set(fmt.Sprint(c.Source, " ", c.MaybeValue()), "config %s of broker %q", c.Key, r.Name)
			}
		}
	}
}

func (w *work) pictureGroups(p picture) {
	w.t.Helper()
	for _, group := range w.groups {
		req := kmsg.NewPtrOffsetFetchRequest()
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = group
		req.Groups = append(req.Groups, g)
		req.Group = group
		resp := ask[*kmsg.OffsetFetchResponse](w, req)
		for _, g := range resp.Groups {
			if g.ErrorCode != 0 {
				w.t.Fatalf("fetching the offsets of %s: error %d", group, g.ErrorCode)
			}
			for _, topic := range g.Topics {
				name := topic.Topic
				if name == "" {
					for n, id := range w.ids {
						if id == topic.TopicID {
							name = n
						}
					}
				}
				for _, part := range topic.Partitions {
					metadata := ""
					if part.Metadata != nil {
						metadata = *part.Metadata
					}
					p.set(fmt.Sprintf("offset %d epoch %d %q error %d", part.Offset, part.LeaderEpoch, metadata, part.ErrorCode), "position of %s in %s-%d", group, name, part.Partition)
				}
			}
		}
	}
	described, err := w.adm.DescribeGroups(w.ctx(), w.classic...)
	w.must(err, "describing groups")
	for _, g := range described.Sorted() {
		w.must(g.Err, "describing group %s", g.Group)
		p.set(fmt.Sprint(g.State, " ", g.ProtocolType, " ", g.Protocol, " ", len(g.Members)), "group %s", g.Group)
		for _, m := range g.Members {
			instance := ""
			if m.InstanceID != nil {
				instance = *m.InstanceID
			}
			p.set(fmt.Sprintf("%s %s %s %x %x", instance, m.ClientID, m.ClientHost, must(m.Join.Raw()), must(m.Assigned.Raw())), "member %s of %s", m.MemberID, g.Group)
		}
	}
	listed, err := w.adm.ListGroups(w.ctx())
	w.must(err, "listing groups")
	for _, g := range listed.Sorted() {
		if slices.Contains(w.classic, g.Group) {
			p.set(fmt.Sprint(g.ProtocolType, " ", g.State, " ", g.GroupType), "listed group %s", g.Group)
		}
	}
}

func must[T any](v T, _ bool) T { return v }

func (w *work) pictureDirs(p picture, set kadm.TopicsSet) {
	w.t.Helper()
	dirs, err := w.adm.DescribeBrokerLogDirs(w.ctx(), 1, set)
	w.must(err, "describing log directories")
	for _, dir := range dirs.Sorted() {
		w.must(dir.Err, "log directory %s", dir.Dir)
		for _, part := range dir.Topics.Sorted() {
			size := fmt.Sprint(part.Size)
			if strings.HasPrefix(part.Topic, "__") || part.Topic == "cut" { // what is below the log start goes some time
				size = "some"
			}
			p.set(fmt.Sprintf("%s, %s bytes, future %v", filepath.Base(dir.Dir), size, part.IsFuture), "directory of %s-%d", part.Topic, part.Partition)
		}
	}
}

// pictureKafka is what samsa does not serve yet but has to keep.
func (w *work) pictureKafka(p picture) {
	w.t.Helper()
	set := func(value, key string, args ...any) { p.set(value, "kafka only: "+key, args...) }
	set("", "")
	quotas, err := w.adm.DescribeClientQuotas(w.ctx(), false, nil)
	w.must(err, "describing quotas")
	for _, q := range quotas {
		set(fmt.Sprint(q.Values), "quota of %s", q.Entity)
	}
	users, err := w.adm.DescribeUserSCRAMs(w.ctx())
	w.must(err, "describing users")
	for _, u := range users.Sorted() {
		set(fmt.Sprint(u.CredInfos), "SCRAM of %s", u.User)
	}
	txns, err := w.adm.ListTransactions(w.ctx(), nil, nil)
	w.must(err, "listing transactions")
	for _, txn := range txns.Sorted() {
		set(fmt.Sprint(txn.ProducerID, " ", txn.State), "transaction %s", txn.TxnID)
	}
	groups, err := w.adm.DescribeConsumerGroups(w.ctx(), w.modern...)
	w.must(err, "describing KIP-848 groups")
	for _, g := range groups.Sorted() {
		w.must(g.Err, "describing %s", g.Group)
		set(fmt.Sprint(g.State, " ", g.Epoch, " ", g.AssignmentEpoch, " ", g.Members), "KIP-848 group %s", g.Group)
	}
	for kind, name := range map[kmsg.ConfigResourceType]string{kmsg.ConfigResourceTypeGroupConfig: "modern", kmsg.ConfigResourceTypeClientMetrics: "metrics"} {
		req := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, name
		req.Resources = append(req.Resources, r)
		for _, r := range ask[*kmsg.DescribeConfigsResponse](w, req).Resources {
			for _, c := range r.Configs {
				value := ""
				if c.Value != nil {
					value = *c.Value
				}
				set(fmt.Sprint(c.Source, " ", value), "config %s of %s %s", c.Name, kind, name)
			}
		}
	}
}
