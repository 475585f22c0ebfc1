package group

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// errorsByName are what a scene can let an append fail with.
var errorsByName = map[string]error{
	"NOT_ENOUGH_REPLICAS":        kerr.NotEnoughReplicas,
	"NOT_LEADER_OR_FOLLOWER":     kerr.NotLeaderOrFollower,
	"MESSAGE_TOO_LARGE":          kerr.MessageTooLarge,
	"UNKNOWN_TOPIC_OR_PARTITION": kerr.UnknownTopicOrPartition,
	"KAFKA_STORAGE_ERROR":        kerr.KafkaStorageError,
}

// TestScenes plays the scenes of testdata: D-154..D-172, T-79..T-84.
//
//	join A [group=g] [member=] [instance=] [client=c] [type=consumer] [protocols=(range:t)] [session=] [rebalance=] [v=9]
//	sync A member= generation= [assign=(id=bytes)] ...   heartbeat A member= generation=   leave A members=(...)
//	commit A [member= generation=] offsets=(t-0=5:note) [id=] [retention=] [v=]     fetch A [offsets=(t-0)] [id=] [stable]
//	describe [group=] [v=6]    list    delete groups=(...)    forget A offsets=(t-0)
//	pass ms=       hold / release [err=]    refuse err= / accept     reload    unload
//	gone topic= id=     settings max= delay= retention=
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.out.Reset()
			w.scene(t, d)
			if w.out.Len() == 0 {
				return "-\n"
			}
			return w.out.String()
		})
	})
}

func (w *world) scene(t *testing.T, d *datadriven.TestData) {
	text := func(key, def string) string {
		if a, ok := d.Arg(key); ok && len(a.Vals) > 0 {
			return a.Vals[0]
		}
		return def
	}
	list := func(key string, def ...string) []string {
		if a, ok := d.Arg(key); ok {
			return slices.DeleteFunc(slices.Clone(a.Vals), func(s string) bool { return s == "" })
		}
		return def
	}
	number := func(key string, def int64) int64 {
		n := def
		if s := text(key, ""); s != "" {
			if _, err := fmt.Sscan(s, &n); err != nil {
				t.Fatalf("%s: %s: %v", d.Pos, key, err)
			}
		}
		return n
	}
	label := ""
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		label = d.CmdArgs[0].Key
	}
	group := text("group", "g")
	switch d.Cmd {
	case "join":
		w.join(label, joinArgs{group: group, member: text("member", ""), instance: text("instance", ""), client: text("client", "c"), kind: text("type", "consumer"),
			protocols: list("protocols", "range:t"), session: int32(number("session", 10000)), rebalance: int32(number("rebalance", 60000)), version: int16(number("v", 9))})
	case "sync":
		assign := map[string]string{}
		for _, a := range list("assign") {
			for i := range a {
				if a[i] == '>' {
					assign[a[:i]] = a[i+1:]
				}
			}
		}
		w.sync(label, group, text("member", ""), text("instance", ""), int32(number("generation", 1)), text("type", ""), text("protocol", ""), assign)
	case "heartbeat":
		w.heartbeat(label, group, text("member", ""), text("instance", ""), int32(number("generation", 1)))
	case "leave":
		w.leave(label, group, list("members"))
	case "commit":
		w.commitOffsets(label, commitArgs{group: group, member: text("member", ""), instance: text("instance", ""), generation: int32(number("generation", -1)),
			retention: number("retention", -1), id: byte(number("id", 1)), version: int16(number("v", 9)), offsets: equals(list("offsets"))})
	case "fetch":
		w.fetch(label, group, list("offsets"), byte(number("id", 0)), d.HasArg("stable"))
	case "describe":
		w.describe(group, int16(number("v", 6)))
	case "list":
		for _, g := range w.core.List(list("states"), list("types")) {
			fmt.Fprintf(&w.out, "%s %s %s %q\n", g.GroupId, g.GroupState, g.GroupType, g.ProtocolType)
		}
	case "delete":
		w.core.DeleteGroups(w.now, list("groups"), func(rs []protocol.DeleteGroupsResponseDeletableGroupResult) {
			for _, r := range rs {
				fmt.Fprintf(&w.out, "%s: %s\n", r.GroupId, code(r.ErrorCode))
			}
		})
		w.settle()
	case "forget":
		req := &protocol.OffsetDeleteRequest{GroupId: group}
		for _, o := range list("offsets") {
			req.Topics = append(req.Topics, protocol.OffsetDeleteRequestOffsetDeleteRequestTopic{Name: o[:len(o)-2],
				Partitions: []protocol.OffsetDeleteRequestOffsetDeleteRequestPartition{{PartitionIndex: int32(o[len(o)-1] - '0')}}})
		}
		w.core.DeleteOffsets(w.now, req, func(r *protocol.OffsetDeleteResponse) {
			fmt.Fprintf(&w.out, "%s: %s", label, code(r.ErrorCode))
			for _, t := range r.Topics {
				fmt.Fprintf(&w.out, " %s-%d=%s", t.Name, t.Partitions[0].PartitionIndex, code(t.Partitions[0].ErrorCode))
			}
			w.out.WriteString("\n")
		})
		w.settle()
	case "gone":
		w.core.TopicsDeleted(w.now, []DeletedTopic{{Name: text("topic", "t"), ID: model.TopicID(topicID(byte(number("id", 1))))}})
		w.settle()
	case "unknown-ids": // T-84
		live := list("live")
		w.core.TopicsGone(w.now, func(id model.TopicID) bool {
			for _, l := range live {
				if l == fmt.Sprint(id[15]) {
					return false
				}
			}
			return true
		})
		w.settle()
	case "pass":
		w.pass(number("ms", 0))
	case "hold":
		w.hold = true
	case "release":
		w.hold = false
		w.release(errorsByName[text("err", "")])
	case "refuse":
		w.refuse = errorsByName[text("err", "")]
	case "accept":
		w.refuse = nil
	case "reload":
		w.reload()
	case "unload":
		w.core.Unload(w.now)
		w.settle()
	case "settings":
		w.settings.MaxSize = int(number("max", int64(w.settings.MaxSize)))
		w.settings.InitialDelayMs = number("delay", w.settings.InitialDelayMs)
		w.settings.OffsetsRetentionMs = number("retention", w.settings.OffsetsRetentionMs)
	default:
		t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	}
}

// equals puts back the '=' that scenes write as '@', since datadriven takes '=' for itself.
func equals(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		b := []byte(s)
		for k := range b {
			if b[k] == '@' {
				b[k] = '='
			}
		}
		out[i] = string(b)
	}
	return out
}
