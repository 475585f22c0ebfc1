package interop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"samsa/internal/wire/record"
)

// groupsAtFirst makes the classic groups: one with a static member that stays, one whose member left,
// one that only has offsets.
func (w *work) groupsAtFirst() {
	w.t.Helper()
	coordinators := w.adm.FindGroupCoordinators(w.ctx(), "static") // makes __consumer_offsets
	_ = coordinators
	w.groups = []string{"static", "left", "simple", "deleted"}
	w.classic = []string{"static", "left", "simple"}
	w.commit("simple", "", -1, "plain", 0, 11, "by hand")
	w.commit("simple", "", -1, "gone", 0, 1, "goes with its topic")
	w.commit("deleted", "", -1, "plain", 0, 1, "")

	static := w.join("static", "instance")
	w.static = &static
	w.commit("static", static.id, static.generation, "plain", 0, 100, "")
	w.commit("static", static.id, static.generation, "codecs", 4, 5, "four")

	left := w.join("left", "")
	w.commit("left", left.id, left.generation, "cut", 0, 90, "")
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "left"
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = left.id
	leave.Members = append(leave.Members, m)
	w.code(ask[*kmsg.LeaveGroupResponse](w, leave).ErrorCode, "leaving")

	_, err := w.adm.DeleteGroup(w.ctx(), "deleted")
	w.must(err, "deleting a group")
}

// join makes a group of one member that has all of plain.
func (w *work) join(group, instance string) staticMember {
	w.t.Helper()
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Version, subscription.Topics = 1, []string{"plain", "codecs", "cut"}
	assignment := kmsg.NewConsumerMemberAssignment()
	assignment.Topics = append(assignment.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: "plain", Partitions: []int32{0, 1, 2}})
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType = group, 3_000_000, 3_000_000, "consumer"
	if instance != "" {
		req.InstanceID = &instance
	}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", subscription.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	var joined *kmsg.JoinGroupResponse
	w.n.Eventually("a member joins "+group, 60*time.Second, func() error {
		joined = ask[*kmsg.JoinGroupResponse](w, req)
		if joined.MemberID != "" {
			req.MemberID = joined.MemberID
		}
		return kerr.ErrorForCode(joined.ErrorCode)
	})
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID, sync.InstanceID = group, joined.Generation, joined.MemberID, req.InstanceID
	sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID, a.MemberAssignment = joined.MemberID, assignment.AppendTo(nil)
	sync.GroupAssignment = append(sync.GroupAssignment, a)
	w.code(ask[*kmsg.SyncGroupResponse](w, sync).ErrorCode, "syncing %s", group)
	return staticMember{joined.MemberID, joined.Generation}
}

func (w *work) commit(group, member string, generation int32, topic string, partition int32, at int64, metadata string) {
	w.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	if group == "static" {
		req.InstanceID = kmsg.StringPtr("instance")
	}
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, w.topicID(topic)
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, at, 0, &metadata
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	w.n.Eventually("a commit of "+group, 60*time.Second, func() error {
		return kerr.ErrorForCode(ask[*kmsg.OffsetCommitResponse](w, req).Topics[0].Partitions[0].ErrorCode)
	})
}

// commits moves the groups on.
func (w *work) commits(phase int) {
	w.t.Helper()
	w.commit("simple", "", -1, "plain", 0, int64(20+phase), fmt.Sprint("phase ", phase))
	w.commit("simple", "", -1, "many.small_topics-with-dashes", int32(phase), int64(phase), "")
	w.commit("static", w.static.id, w.static.generation, "plain", 1, int64(phase), "")
	of := fmt.Sprint("group-of-phase-", phase)
	w.groups, w.classic = append(w.groups, of), append(w.classic, of)
	w.commit(of, "", -1, "plain", 0, 1, "")
}

// doKafka writes what only Apache Kafka can so far: transactions in every state, a KIP-848 group, quotas, users.
func (w *work) doKafka() {
	w.t.Helper()
	w.create("transactions", 2)
	ctx := w.ctx()
	txn, err := kgo.NewClient(kgo.SeedBrokers(w.n.Addr), kgo.TransactionalID("ended"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.must(err, "a transactional client")
	for i := range 4 {
		w.must(txn.BeginTransaction(), "beginning a transaction")
		for part := range int32(2) {
			r := &kgo.Record{Topic: "transactions", Partition: part, Value: fmt.Append(nil, "transaction ", i), Key: []byte("k")}
			w.must(txn.ProduceSync(ctx, r).FirstErr(), "producing in a transaction")
			tp := fmt.Sprintf("transactions-%d", part)
			w.sent[tp] = append(w.sent[tp], sentRecord{r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value})
		}
		w.must(txn.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)), "ending a transaction")
	}
	txn.Close()

	// A transaction that stays open over the handover, with offsets in it.
	w.groups, w.classic = append(w.groups, "in-transaction"), append(w.classic, "in-transaction")
	w.commit("in-transaction", "", -1, "plain", 0, 1, "before the transaction")
	w.open = w.initProducer("open")
	w.mustProduce("transactions", 0, w.batch(batchOptions{records: 4, size: 100, time: w.base + 60*day, seed: 9000, producer: w.open}), "open")
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch, commit.Generation = "open", "in-transaction", w.open.id, w.open.epoch, -1
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic, t.TopicID = "plain", w.topicID("plain")
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = 0, 77, kmsg.StringPtr("in the transaction")
	t.Partitions = append(t.Partitions, p)
	commit.Topics = append(commit.Topics, t)
	w.n.Eventually("offsets join the transaction", 30*time.Second, func() error {
		return kerr.ErrorForCode(ask[*kmsg.TxnOffsetCommitResponse](w, commit).Topics[0].Partitions[0].ErrorCode)
	})
	// What comes behind an open transaction is not stable, and a transaction aborted behind it either.
	w.mustProduce("transactions", 0, w.batch(batchOptions{records: 2, size: 100, time: w.base + 60*day, seed: 9001}))
	aborted := w.initProducer("aborted")
	w.mustProduce("transactions", 0, w.batch(batchOptions{records: 2, size: 100, time: w.base + 60*day, seed: 9002, producer: aborted}), "aborted")
	w.endTransaction(aborted, false)

	w.compact()
	w.modernGroup()
	quota := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: kmsg.StringPtr("someone")}}, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 1 << 30}}}
	_, err = w.adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{quota})
	w.must(err, "setting a quota")
	_, err = w.adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: "alice", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "secret"}})
	w.must(err, "making a user")
	for kind, c := range map[kmsg.ConfigResourceType][3]string{kmsg.ConfigResourceTypeGroupConfig: {"modern", "consumer.session.timeout.ms", "59000"}, kmsg.ConfigResourceTypeClientMetrics: {"metrics", "interval.ms", "60000"}} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, c[0]
		r.Configs = append(r.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: c[1], Value: &c[2]})
		req.Resources = append(req.Resources, r)
		w.code(ask[*kmsg.IncrementalAlterConfigsResponse](w, req).Resources[0].ErrorCode, "setting %s of %s", c[1], c[0])
	}
}

// compact makes a log with gaps, tombstones and the empty batch of a producer's last sequence number, as the cleaner leaves them.
func (w *work) compact() {
	w.t.Helper()
	w.create("cleaned", 1, "cleanup.policy", "compact", "segment.bytes", "1048576", "min.cleanable.dirty.ratio", "0.01")
	p := w.initProducer("")
	for i := range 5 {
		w.mustProduce("cleaned", 0, w.batch(batchOptions{codec: record.Codec(i), records: 20, size: 30000, time: w.base + 60*day, seed: 9100 + uint64(i), producer: p, compactable: true}))
	}
	delete(w.sent, "cleaned-0")
	w.n.Eventually("the cleaner has been there", 60*time.Second, func() error {
		for batch, err := range record.Split(w.fetch("cleaned", 0, 0, 0).RecordBatches) {
			if err != nil {
				return err
			}
			if batch.Count() == 20 {
				return fmt.Errorf("the first batch is as it was")
			}
			return nil
		}
		return fmt.Errorf("there is no batch")
	})
}

func (w *work) modernGroup() {
	w.t.Helper()
	w.modern, w.groups = []string{"modern"}, append(w.groups, "modern")
	w.member = "AAAAAAAAAAAAAAAAAAAAAQ"
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = "modern", w.member, 0, 60000
	req.SubscribedTopicNames, req.Topics = []string{"plain", "codecs"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	w.n.Eventually("the member of a KIP-848 group has its partitions", 60*time.Second, func() error {
		resp := ask[*kmsg.ConsumerGroupHeartbeatResponse](w, req)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return err
		}
		req.MemberEpoch = resp.MemberEpoch
		if resp.Assignment == nil || len(resp.Assignment.Topics) != 2 {
			return fmt.Errorf("epoch %d, assignment %v", resp.MemberEpoch, resp.Assignment)
		}
		req.Topics = nil
		for _, t := range resp.Assignment.Topics {
			req.Topics = append(req.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: t.TopicID, Partitions: t.Partitions})
		}
		return nil
	})
	w.epoch = req.MemberEpoch
	w.heartbeatModern(req.Topics)
	w.commit("modern", w.member, w.epoch, "plain", 0, 123, "KIP-848")
}

func (w *work) heartbeatModern(owned []kmsg.ConsumerGroupHeartbeatRequestTopic) {
	w.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.Topics = "modern", w.member, w.epoch, owned
	w.code(ask[*kmsg.ConsumerGroupHeartbeatResponse](w, req).ErrorCode, "heartbeat of the KIP-848 member")
}

func (w *work) endTransaction(p *idempotent, commit bool) {
	w.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.txn, p.id, p.epoch, commit
	w.code(ask[*kmsg.EndTxnResponse](w, req).ErrorCode, "ending transaction %s", p.txn)
	w.n.Eventually("transaction "+p.txn+" is complete", 30*time.Second, func() error {
		got, err := w.adm.DescribeTransactions(w.ctx(), p.txn)
		if err != nil {
			return err
		}
		if s := got[p.txn].State; s != "CompleteCommit" && s != "CompleteAbort" {
			return fmt.Errorf("state %s", s)
		}
		return nil
	})
}

// finishKafka goes on with what doKafka began: the producer of the open transaction still owns it, the
// member of the KIP-848 group is still a member.
func (w *work) finishKafka() {
	w.t.Helper()
	w.heartbeatModern(nil)
	w.commit("modern", w.member, w.epoch, "plain", 1, 5, "the same member")
	w.mustProduce("transactions", 0, w.batch(batchOptions{records: 2, size: 100, time: w.base + 60*day, seed: 9003, producer: w.open}), "open")
	w.endTransaction(w.open, true)
	p := w.picture()
	if got, want := p.facts["position of in-transaction in plain-0"], `offset 77 epoch -1 "in the transaction" error 0`; got != want {
		w.t.Errorf("after the transaction: %s, expected %s", got, want)
	}
	if p.facts["last stable offset of transactions-0"] != p.facts["end of transactions-0"] {
		w.t.Errorf("the last stable offset is %s, the end %s", p.facts["last stable offset of transactions-0"], p.facts["end of transactions-0"])
	}
	w.committed()
}

// committed reads with read_committed: the records of aborted transactions are left out.
func (w *work) committed() {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.n.Addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"transactions": {0: kgo.NewOffset().AtStart()}}))
	w.must(err, "a consumer")
	defer cl.Close()
	ends, err := w.adm.ListCommittedOffsets(w.ctx(), "transactions")
	w.must(err, "the end of what is committed")
	end, _ := ends.Lookup("transactions", 0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var got []int64
	var want []int64
	open := false
	for _, r := range w.sent["transactions-0"] {
		if r.offset >= end.Offset {
			open = true
			continue
		}
		switch string(r.value) {
		case "transaction 1", "transaction 3":
		default:
			if len(r.key) > 8 && string(r.key[:8]) == "key-9002" {
				continue
			}
			want = append(want, r.offset)
		}
	}
	_ = open
	for len(got) == 0 || got[len(got)-1] < want[len(want)-1] {
		f := cl.PollFetches(ctx)
		w.must(f.Err0(), "consuming")
		f.EachRecord(func(r *kgo.Record) { got = append(got, r.Offset) })
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("read_committed sees offsets %v of transactions-0, expected %v", got, want)
	}
	_ = record.None
}
