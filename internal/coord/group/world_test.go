package group

import (
	"fmt"
	"slices"
	"strings"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// world drives one Core as the runtime does, with a log that commits at once unless told to hold.
type world struct {
	core     *Core
	now      int64
	settings Settings
	ids      int
	out      strings.Builder

	hold    bool
	held    []Batch
	refuse  error // of the next appends
	log     []Record
	quiet   bool // batches are not printed
	replies int
	notes   []Note
}

func testSettings() Settings {
	return Settings{MinSessionMs: 6000, MaxSessionMs: 1800000, InitialDelayMs: 3000, NewMemberJoinTimeout: NewMemberJoinTimeoutMs, MaxSize: 1000,
		OffsetMetadataMax: 4096, OffsetsRetentionMs: 7 * 24 * 3600_000, RetentionCheckMs: 600_000, CommitTimeoutMs: 5000}
}

func newWorld() *world {
	w := &world{now: 1_000_000, settings: testSettings()}
	w.core = w.newCore()
	w.core.Loaded(w.now)
	return w
}

func (w *world) newCore() *Core {
	return New(Options{Settings: func() Settings { return w.settings }, UUID: func() string { w.ids++; return fmt.Sprint(w.ids) }})
}

// settle carries out effects until there are none.
func (w *world) settle() {
	for {
		e := w.core.Effects()
		if len(e.Batches) == 0 && len(e.Replies) == 0 {
			w.notes = append(w.notes, e.Notes...)
			return
		}
		w.notes = append(w.notes, e.Notes...)
		for _, b := range e.Batches {
			if !w.quiet {
				fmt.Fprintf(&w.out, "append %s\n", describeRecords(b.Records))
			}
			switch {
			case w.refuse != nil:
				w.core.Appended(w.now, b.ID, w.refuse)
			case w.hold:
				w.held = append(w.held, b)
			default:
				w.commit(b)
			}
		}
		for _, f := range e.Replies {
			w.replies++
			f()
		}
	}
}

func (w *world) commit(b Batch) {
	w.log = append(w.log, b.Records...)
	w.core.Appended(w.now, b.ID, nil)
}

// release commits, or fails, what is held.
func (w *world) release(err error) {
	held := w.held
	w.held = nil
	for _, b := range held {
		if err == nil {
			w.commit(b)
		} else {
			w.core.Appended(w.now, b.ID, err)
		}
	}
	w.settle()
}

// pass lets time go by, stopping at every deadline.
func (w *world) pass(ms int64) {
	end := w.now + ms
	for {
		next := w.core.timers.next()
		if next > end {
			break
		}
		w.now = max(w.now, next)
		w.core.Tick(w.now)
		w.settle()
	}
	w.now = end
}

// reload makes a new core of what the log holds.
func (w *world) reload() {
	w.core.Unload(w.now)
	w.settle()
	w.held = nil
	w.core = w.newCore()
	for i, r := range w.log {
		if err := w.core.Replay(int64(i), -1, r.Key, r.Value); err != nil {
			panic(err)
		}
	}
	w.core.Loaded(w.now)
	w.settle()
}

func describeRecords(records []Record) string {
	var out []string
	for _, r := range records {
		out = append(out, describeRecord(r))
	}
	return strings.Join(out, "; ")
}

func describeRecord(r Record) string {
	kind, fields, err := protocol.RecordType(r.Key)
	if err != nil {
		return err.Error()
	}
	switch kind {
	case 1:
		var k protocol.OffsetCommitKey
		if _, err := k.Read(fields, 0); err != nil {
			return err.Error()
		}
		at := fmt.Sprintf("offset %s %s-%d", k.Group, k.Topic, k.Partition)
		if r.Value == nil {
			return at + " removed"
		}
		var v protocol.OffsetCommitValue
		version, _, err := protocol.ReadVersioned(r.Value, &v)
		if err != nil {
			return err.Error()
		}
		s := fmt.Sprintf("%s = %d epoch=%d v%d", at, v.Offset, v.LeaderEpoch, version)
		if v.Metadata != "" {
			s += fmt.Sprintf(" %q", v.Metadata)
		}
		if v.ExpireTimestamp != -1 {
			s += fmt.Sprintf(" expires=%d", v.ExpireTimestamp)
		}
		if !v.TopicId.IsZero() {
			s += fmt.Sprintf(" id=%d", v.TopicId[15])
		}
		return s
	case 2:
		var k protocol.GroupMetadataKey
		if _, err := k.Read(fields, 0); err != nil {
			return err.Error()
		}
		if r.Value == nil {
			return "group " + k.Group + " removed"
		}
		var v protocol.GroupMetadataValue
		version, _, err := protocol.ReadVersioned(r.Value, &v)
		if err != nil {
			return err.Error()
		}
		s := fmt.Sprintf("group %s v%d generation=%d type=%q protocol=%s leader=%s", k.Group, version, v.Generation, v.ProtocolType, str(v.Protocol), str(v.Leader))
		for _, m := range v.Members {
			s += " " + m.MemberId
			if m.GroupInstanceId != nil {
				s += "/" + *m.GroupInstanceId
			}
			s += "=" + string(m.Assignment)
		}
		return s
	}
	return fmt.Sprintf("type %d", kind)
}

func str(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	return kerr.ForCode(c).Name
}

// joinArgs is what a join says.
type joinArgs struct {
	group, member, instance, client, kind string
	protocols                             []string // name or name:metadata
	session, rebalance                    int32
	version                               int16
}

func (w *world) join(label string, a joinArgs) {
	req := &protocol.JoinGroupRequest{GroupId: a.group, MemberId: a.member, ProtocolType: a.kind, SessionTimeoutMs: a.session, RebalanceTimeoutMs: a.rebalance}
	if a.instance != "" {
		req.GroupInstanceId = &a.instance
	}
	for _, p := range a.protocols {
		name, metadata, _ := strings.Cut(p, ":")
		req.Protocols = append(req.Protocols, protocol.JoinGroupRequestJoinGroupRequestProtocol{Name: name, Metadata: subscription(metadata)})
	}
	reply := func(r *protocol.JoinGroupResponse) { fmt.Fprintf(&w.out, "%s: %s\n", label, describeJoin(r)) }
	if err := CheckJoin(w.settings, req); err != nil {
		reply(JoinError(req.MemberId, err))
		return
	}
	w.core.Join(w.now, Caller{a.version, a.client, "/127.0.0.1"}, req, reply)
	w.settle()
}

func describeJoin(r *protocol.JoinGroupResponse) string {
	s := fmt.Sprintf("%s generation=%d type=%s protocol=%s leader=%s member=%s", code(r.ErrorCode), r.GenerationId, str(r.ProtocolType), str(r.ProtocolName), r.Leader, r.MemberId)
	if len(r.Members) > 0 {
		var ms []string
		for _, m := range r.Members {
			id := m.MemberId
			if m.GroupInstanceId != nil {
				id += "/" + *m.GroupInstanceId
			}
			ms = append(ms, id)
		}
		s += " members=" + strings.Join(ms, ",")
	}
	if r.SkipAssignment {
		s += " skip"
	}
	return s
}

// subscription is a consumer's subscription to topics separated by '+'; "!" is bytes that are none.
func subscription(topics string) []byte {
	if topics == "!" {
		return []byte{1}
	}
	s := protocol.Make[protocol.ConsumerProtocolSubscription]()
	for t := range strings.SplitSeq(topics, "+") {
		if t != "" {
			s.Topics = append(s.Topics, t)
		}
	}
	return must(protocol.AppendVersioned(nil, 1, &s))
}

func (w *world) sync(label, group, member, instance string, generation int32, kind, name string, assignments map[string]string) {
	req := &protocol.SyncGroupRequest{GroupId: group, MemberId: member, GenerationId: generation}
	if instance != "" {
		req.GroupInstanceId = &instance
	}
	if kind != "" {
		req.ProtocolType = &kind
	}
	if name != "" {
		req.ProtocolName = &name
	}
	for _, id := range sortedKeys(assignments) {
		req.Assignments = append(req.Assignments, protocol.SyncGroupRequestSyncGroupRequestAssignment{MemberId: id, Assignment: []byte(assignments[id])})
	}
	w.core.Sync(w.now, req, func(r *protocol.SyncGroupResponse) {
		fmt.Fprintf(&w.out, "%s: %s type=%s protocol=%s assignment=%q\n", label, code(r.ErrorCode), str(r.ProtocolType), str(r.ProtocolName), r.Assignment)
	})
	w.settle()
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (w *world) heartbeat(label, group, member, instance string, generation int32) {
	req := &protocol.HeartbeatRequest{GroupId: group, MemberId: member, GenerationId: generation}
	if instance != "" {
		req.GroupInstanceId = &instance
	}
	w.core.Heartbeat(w.now, req, func(r *protocol.HeartbeatResponse) { fmt.Fprintf(&w.out, "%s: %s\n", label, code(r.ErrorCode)) })
	w.settle()
}

// leave takes members as id, or id/instance, or /instance.
func (w *world) leave(label, group string, members []string) {
	req := &protocol.LeaveGroupRequest{GroupId: group}
	for _, m := range members {
		id, instance, static := strings.Cut(m, "/")
		who := protocol.LeaveGroupRequestMemberIdentity{MemberId: id}
		if static {
			who.GroupInstanceId = &instance
		}
		req.Members = append(req.Members, who)
	}
	w.core.Leave(w.now, req, func(r *protocol.LeaveGroupResponse) {
		fmt.Fprintf(&w.out, "%s: %s", label, code(r.ErrorCode))
		for i := range r.Members {
			fmt.Fprintf(&w.out, " %s=%s", members[i], code(r.Members[i].ErrorCode))
		}
		w.out.WriteString("\n")
	})
	w.settle()
}

// commitArgs is what a commit says; offsets are topic-partition=offset[:metadata].
type commitArgs struct {
	group, member, instance string
	generation              int32
	retention               int64
	id                      byte // topic id
	version                 int16
	offsets                 []string
}

func (w *world) commitOffsets(label string, a commitArgs) {
	req := &protocol.OffsetCommitRequest{GroupId: a.group, MemberId: a.member, GenerationIdOrMemberEpoch: a.generation, RetentionTimeMs: a.retention}
	if a.instance != "" {
		req.GroupInstanceId = &a.instance
	}
	for _, o := range a.offsets {
		var p int32
		var offset int64
		where, what, _ := strings.Cut(o, "=")
		topic, index, _ := strings.Cut(where, "-")
		fmt.Sscan(index, &p)
		number, metadata, _ := strings.Cut(what, ":")
		fmt.Sscan(number, &offset)
		t := protocol.OffsetCommitRequestOffsetCommitRequestTopic{Name: topic, TopicId: topicID(a.id)}
		t.Partitions = append(t.Partitions, protocol.OffsetCommitRequestOffsetCommitRequestPartition{PartitionIndex: p, CommittedOffset: offset, CommittedLeaderEpoch: 7, CommittedMetadata: &metadata})
		req.Topics = append(req.Topics, t)
	}
	w.core.Commit(w.now, Caller{Version: a.version}, req, func(r *protocol.OffsetCommitResponse) {
		var codes []string
		for i := range r.Topics {
			codes = append(codes, code(r.Topics[i].Partitions[0].ErrorCode))
		}
		fmt.Fprintf(&w.out, "%s: %s\n", label, strings.Join(codes, " "))
	})
	w.settle()
}

func topicID(n byte) (id model.UUID) {
	id[15] = n
	return id
}

// fetch asks for topic-partition, or for all.
func (w *world) fetch(label, group string, asked []string, id byte, stable bool) {
	req := &protocol.OffsetFetchRequestOffsetFetchRequestGroup{GroupId: group}
	for _, a := range asked {
		var p int32
		topic, index, _ := strings.Cut(a, "-")
		fmt.Sscan(index, &p)
		req.Topics = append(req.Topics, protocol.OffsetFetchRequestOffsetFetchRequestTopics{Name: topic, TopicId: topicID(id), PartitionIndexes: []int32{p}})
	}
	r := w.core.Fetch(req, stable)
	fmt.Fprintf(&w.out, "%s: %s", label, code(r.ErrorCode))
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			fmt.Fprintf(&w.out, " %s-%d=%d", t.Name, p.PartitionIndex, p.CommittedOffset)
			if p.ErrorCode != 0 {
				fmt.Fprintf(&w.out, "(%s)", code(p.ErrorCode))
			}
			if *p.Metadata != "" {
				fmt.Fprintf(&w.out, "%q", *p.Metadata)
			}
		}
	}
	w.out.WriteString("\n")
	w.settle()
}

func (w *world) describe(group string, version int16) {
	d := w.core.Describe(group, version)
	fmt.Fprintf(&w.out, "%s: %s %s type=%q protocol=%q", group, code(d.ErrorCode), d.GroupState, d.ProtocolType, d.ProtocolData)
	if d.ErrorMessage != nil {
		fmt.Fprintf(&w.out, " %q", *d.ErrorMessage)
	}
	for _, m := range d.Members {
		fmt.Fprintf(&w.out, " %s", m.MemberId)
		if m.GroupInstanceId != nil {
			fmt.Fprintf(&w.out, "/%s", *m.GroupInstanceId)
		}
		fmt.Fprintf(&w.out, "=%s", m.MemberAssignment)
		if len(m.MemberMetadata) > 0 {
			w.out.WriteString("+metadata")
		}
	}
	w.out.WriteString("\n")
}
