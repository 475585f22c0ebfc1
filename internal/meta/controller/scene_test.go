package controller

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"samsa/internal/base/config"
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// scene is a controller, its image and a clock. Decisions are applied at once, as if committed.
type scene struct {
	t     testing.TB
	c     *Controller
	img   *image.Image
	nowMs int64
	ids   int
	names map[model.UUID]string
	kraft int16
}

func newScene(t testing.TB, mv image.MetadataVersion, features map[string]int16, props map[string]string) *scene {
	t.Helper()
	all := map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@localhost:9093",
		"listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093", "controller.listener.names": "CONTROLLER",
	}
	for k, v := range props {
		all[k] = v
	}
	cfg, err := config.FromMap(all)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, img: image.Empty(), names: map[model.UUID]string{}, nowMs: 1000}
	s.c = New(Options{
		NodeID: 1, ClusterID: "cluster", Config: cfg, Rand: rand.New(rand.NewPCG(1, 2)),
		NewID: func() model.UUID { s.ids++; return s.id(fmt.Sprintf("T%d", s.ids)) },
		KRaft: s,
	})
	bootstrap := []image.Versioned{{Record: &protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: int16(mv)}}}
	for _, name := range []string{image.FeatureELR, image.FeatureGroup} {
		if level := features[name]; level > 0 {
			bootstrap = append(bootstrap, image.Versioned{Record: &protocol.FeatureLevelRecord{Name: name, FeatureLevel: level}})
		}
	}
	s.decide(func(d *Draft) { s.c.ActivationRecords(d, bootstrap, false) })
	s.c.Activate(s.img, s.nowMs)
	return s
}

func (s *scene) KRaftVersion() int16 { return s.kraft }
func (s *scene) UpgradeKRaftVersion(level int16, validateOnly bool) error {
	if !validateOnly {
		s.kraft = level
	}
	return nil
}

// id gives a name an id: the name itself as bytes, well above the reserved range.
func (s *scene) id(name string) model.UUID {
	switch name {
	case "LOST":
		return model.UUID(model.DirLost)
	case "UNASSIGNED":
		return model.UUID(model.DirUnassigned)
	case "MIGRATING", "-":
		return model.UUID{}
	}
	var u model.UUID
	copy(u[:], name)
	s.names[u] = name
	return u
}

// decide runs one decision and makes its records the image. It returns the records.
func (s *scene) decide(f func(*Draft)) []image.Versioned {
	s.t.Helper()
	d := NewDraft(s.img, s.img.Offset()+1, s.nowMs)
	f(d)
	img := d.Image()
	if d.Err() != nil {
		s.t.Fatal(d.Err())
	}
	records, atomic := d.Records()
	if atomic && len(records) > MaxRecordsPerBatch {
		s.t.Fatalf("an atomic decision of %d records", len(records))
	}
	for _, v := range records {
		if _, err := image.AppendFrame(nil, v); err != nil {
			s.t.Fatalf("record cannot be written: %v", err)
		}
	}
	s.img = img
	return records
}

// show is a message in one line: fields that differ from the schema's defaults, ids by name.
func (s *scene) show(m any) string {
	v := reflect.ValueOf(m).Elem()
	fresh := reflect.New(v.Type())
	if d, ok := fresh.Interface().(interface{ Default() }); ok {
		d.Default()
	}
	var parts []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Name == "UnknownTags" || f.Name == "ThrottleTimeMs" || reflect.DeepEqual(v.Field(i).Interface(), fresh.Elem().Field(i).Interface()) {
			continue
		}
		if text := s.value(f.Name, v.Field(i)); text != "" {
			parts = append(parts, f.Name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

func (s *scene) value(field string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case model.UUID:
		switch model.DirectoryID(x) {
		case model.DirMigrating:
			return "MIGRATING"
		case model.DirUnassigned:
			return "UNASSIGNED"
		case model.DirLost:
			return "LOST"
		}
		if name, ok := s.names[x]; ok {
			return name
		}
		return x.String()
	case *string:
		if x == nil {
			return "null"
		}
		return strconv.Quote(*x)
	case int16:
		if field == "ErrorCode" || field == "TopicConfigErrorCode" {
			return kerr.ForCode(x).Name
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return ""
		}
		if field == "Configs" && v.Len() > 3 {
			return fmt.Sprintf("(%d configs)", v.Len())
		}
		var parts []string
		for i := range v.Len() {
			parts = append(parts, s.value("", v.Index(i)))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.Struct:
		return "{" + s.show(v.Addr().Interface()) + "}"
	}
	return fmt.Sprint(v.Interface())
}

func (s *scene) records(out *strings.Builder, records []image.Versioned) {
	for _, v := range records {
		fmt.Fprintf(out, "  %s v%d %s\n", strings.TrimSuffix(image.RecordName(v.Record), "Record"), v.Version, s.show(v.Record))
	}
}

// args of a command or of a line of its input.
type args map[string]string

func parse(words []string) (string, args) {
	a := args{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		a[k] = v
	}
	return words[0], a
}

func (a args) has(k string) bool { _, ok := a[k]; return ok }
func (a args) num(k string, def int64) int64 {
	if !a.has(k) {
		return def
	}
	n, err := strconv.ParseInt(a[k], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
func (a args) list(k string) []string {
	if a[k] == "" {
		return nil
	}
	return strings.Split(a[k], ",")
}
func ints(list []string) []int32 {
	out := []int32{}
	for _, s := range list {
		n, _ := strconv.Atoi(s)
		out = append(out, int32(n))
	}
	return out
}
func (s *scene) uuids(list []string) []model.UUID {
	out := []model.UUID{}
	for _, name := range list {
		out = append(out, s.id(name))
	}
	return out
}

// TestScenes plays testdata/*: see the files for the vocabulary. Rewrite with -rewrite, then read the difference.
func TestScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		var s *scene
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			words := []string{td.Cmd}
			for _, a := range td.CmdArgs {
				w := a.Key
				if len(a.Vals) > 0 {
					w += "=" + strings.Join(a.Vals, ",")
				}
				words = append(words, w)
			}
			cmd, a := parse(words)
			if cmd == "cluster" {
				props := map[string]string{}
				for _, line := range strings.Fields(td.Input) {
					k, v, _ := strings.Cut(line, "=")
					props[k] = v
				}
				s = newScene(t, image.MetadataVersion(a.num("mv", 33)), map[string]int16{image.FeatureELR: int16(a.num("elr", 0)), image.FeatureGroup: int16(a.num("group", 0))}, props)
				return ""
			}
			s.t = t
			return s.command(cmd, a, strings.Split(strings.TrimSpace(td.Input), "\n"))
		})
	})
}

func (s *scene) caller(a args) Caller {
	c := Caller{Version: int16(a.num("v", 99)), Forwarded: a.has("forwarded")}
	if a.has("may") {
		allowed := a.list("may")
		c.Allowed = func(op, resource int8, name string) bool {
			for _, w := range allowed {
				if w == fmt.Sprintf("%s:%s", map[int8]string{OpCreate: "create", OpDelete: "delete", OpAlter: "alter", OpDescribe: "describe", OpDescribeConfigs: "describe-configs", OpAlterConfigs: "alter-configs"}[op], name) {
					return true
				}
			}
			return false
		}
	}
	if a.has("quota") {
		left := int(a.num("quota", 0))
		c.MutationQuota = func(n int) error {
			if n > left {
				return kerr.ThrottlingQuotaExceeded
			}
			left -= n
			return nil
		}
	}
	return c
}

func (s *scene) command(cmd string, a args, input []string) string {
	var out strings.Builder
	var resp any
	run := func(f func(*Draft)) {
		s.records(&out, s.decide(f))
	}
	broker := int32(a.num("broker", 1))
	epoch := int64(-1)
	if b, ok := s.img.Brokers().ByID(model.NodeID(broker)); ok {
		epoch = b.Epoch
	}
	epoch = a.num("epoch", epoch)
	switch cmd {
	case "advance":
		s.nowMs += a.num("ms", 0)
		return ""
	case "register":
		r := new(protocol.BrokerRegistrationRequest)
		r.Default()
		r.BrokerId, r.ClusterId, r.IncarnationId, r.PreviousBrokerEpoch = broker, "cluster", s.id(a["incarnation"]), a.num("prev", -1)
		if a.has("cluster") {
			r.ClusterId = a["cluster"]
		}
		if rack, ok := a["rack"]; ok {
			r.Rack = &rack
		}
		r.IsMigratingZkBroker = a.has("zk")
		r.LogDirs = s.uuids(a.list("dirs"))
		features := []string{"metadata.version:7:33", "eligible.leader.replicas.version:0:1", "group.version:0:1", "kraft.version:0:1"}
		if a.has("features") {
			features = a.list("features")
		}
		for _, f := range features {
			p := strings.Split(f, ":")
			n := ints(p[1:])
			r.Features = append(r.Features, protocol.BrokerRegistrationRequestFeature{Name: p[0], MinSupportedVersion: int16(n[0]), MaxSupportedVersion: int16(n[1])})
		}
		r.Listeners = []protocol.BrokerRegistrationRequestListener{{Name: "PLAINTEXT", Host: "h", Port: 9092}}
		run(func(d *Draft) { resp = s.c.RegisterBroker(d, s.caller(a), r) })
	case "heartbeat":
		r := new(protocol.BrokerHeartbeatRequest)
		r.Default()
		r.BrokerId, r.BrokerEpoch, r.CurrentMetadataOffset = broker, epoch, a.num("offset", s.img.Offset())
		r.WantFence, r.WantShutDown = a.has("fence"), a.has("shutdown")
		r.OfflineLogDirs = s.uuids(a.list("offline"))
		if a.has("cordoned") {
			r.CordonedLogDirs = s.uuids(a.list("cordoned"))
		}
		run(func(d *Draft) { resp = s.c.BrokerHeartbeat(d, r) })
	case "fence-stale":
		run(func(d *Draft) {
			id, more := s.c.FenceStale(d)
			fmt.Fprintf(&out, "fenced %d more=%v\n", id, more)
		})
	case "unregister":
		run(func(d *Draft) { resp = s.c.UnregisterBroker(d, &protocol.UnregisterBrokerRequest{BrokerId: broker}) })
	case "create-topics":
		r := new(protocol.CreateTopicsRequest)
		r.Default()
		r.ValidateOnly = a.has("validate")
		for _, line := range input {
			name, l := parse(strings.Fields(line))
			name, _ = strconv.Unquote(`"` + name + `"`)
			if l.has("empty") {
				name = ""
			}
			if l.has("long") {
				name = strings.Repeat("x", int(l.num("long", 0)))
			}
			topic := protocol.CreateTopicsRequestCreatableTopic{Name: name, NumPartitions: int32(l.num("partitions", 1)), ReplicationFactor: int16(l.num("rf", 1))}
			for _, c := range l.list("configs") {
				k, v, ok := strings.Cut(c, ":")
				cfg := protocol.CreateTopicsRequestCreatableTopicConfig{Name: k}
				if ok {
					cfg.Value = &v
				}
				topic.Configs = append(topic.Configs, cfg)
			}
			for _, as := range l.list("assign") { // 0:1/2
				k, v, _ := strings.Cut(as, ":")
				brokers := []string{}
				if v != "" {
					brokers = strings.Split(v, "/")
				}
				topic.Assignments = append(topic.Assignments, protocol.CreateTopicsRequestCreatableReplicaAssignment{PartitionIndex: ints([]string{k})[0], BrokerIds: ints(brokers)})
			}
			r.Topics = append(r.Topics, topic)
		}
		run(func(d *Draft) { resp = s.c.CreateTopics(d, s.caller(a), r) })
	case "delete-topics":
		r := new(protocol.DeleteTopicsRequest)
		r.Default()
		for _, line := range input {
			name, l := parse(strings.Fields(line))
			switch {
			case l.has("old"):
				r.TopicNames = append(r.TopicNames, name)
			case name == "none":
				r.Topics = append(r.Topics, protocol.DeleteTopicsRequestDeleteTopicState{})
			case name == "id":
				r.Topics = append(r.Topics, protocol.DeleteTopicsRequestDeleteTopicState{TopicId: s.id(l["of"])})
			case l.has("id"):
				r.Topics = append(r.Topics, protocol.DeleteTopicsRequestDeleteTopicState{Name: &name, TopicId: s.id(l["id"])})
			default:
				r.Topics = append(r.Topics, protocol.DeleteTopicsRequestDeleteTopicState{Name: &name})
			}
		}
		run(func(d *Draft) { resp = s.c.DeleteTopics(d, s.caller(a), r) })
	case "create-partitions":
		r := new(protocol.CreatePartitionsRequest)
		r.Default()
		r.ValidateOnly = a.has("validate")
		for _, line := range input {
			name, l := parse(strings.Fields(line))
			topic := protocol.CreatePartitionsRequestCreatePartitionsTopic{Name: name, Count: int32(l.num("count", 0))}
			for _, as := range l.list("assign") {
				topic.Assignments = append(topic.Assignments, protocol.CreatePartitionsRequestCreatePartitionsAssignment{BrokerIds: ints(strings.Split(as, "/"))})
			}
			r.Topics = append(r.Topics, topic)
		}
		run(func(d *Draft) { resp = s.c.CreatePartitions(d, s.caller(a), r) })
	case "alter-partition":
		r := &protocol.AlterPartitionRequest{BrokerId: broker, BrokerEpoch: epoch}
		for _, line := range input {
			name, l := parse(strings.Fields(line)) // T1:0 isr=1,2@77 leader-epoch=0 partition-epoch=0 recovery=0
			id, index, _ := strings.Cut(name, ":")
			p := protocol.AlterPartitionRequestPartitionData{PartitionIndex: ints([]string{index})[0], LeaderEpoch: int32(l.num("leader-epoch", 0)), PartitionEpoch: int32(l.num("partition-epoch", 0)), LeaderRecoveryState: int8(l.num("recovery", 0))}
			for _, m := range l.list("isr") {
				n, e, ok := strings.Cut(m, "@")
				st := protocol.AlterPartitionRequestBrokerState{BrokerId: ints([]string{n})[0], BrokerEpoch: -1}
				if ok {
					st.BrokerEpoch, _ = strconv.ParseInt(e, 10, 64)
				}
				p.NewIsrWithEpochs = append(p.NewIsrWithEpochs, st)
				p.NewIsr = append(p.NewIsr, st.BrokerId)
			}
			r.Topics = append(r.Topics, protocol.AlterPartitionRequestTopicData{TopicId: s.id(id), Partitions: []protocol.AlterPartitionRequestPartitionData{p}})
		}
		run(func(d *Draft) { resp = s.c.AlterPartition(d, s.caller(a), r) })
	case "elect":
		r := new(protocol.ElectLeadersRequest)
		r.Default()
		r.ElectionType, r.TopicPartitions = int8(a.num("type", 0)), nil
		for _, line := range input {
			if line == "" {
				continue
			}
			name, l := parse(strings.Fields(line))
			r.TopicPartitions = append(r.TopicPartitions, protocol.ElectLeadersRequestTopicPartitions{Topic: name, Partitions: ints(l.list("partitions"))})
		}
		run(func(d *Draft) { resp = s.c.ElectLeaders(d, r) })
	case "balance":
		run(func(d *Draft) { s.c.BalanceLeaders(d) })
	case "elect-unclean":
		run(func(d *Draft) { s.c.ElectUnclean(d) })
	case "assign-dirs":
		r := &protocol.AssignReplicasToDirsRequest{BrokerId: broker, BrokerEpoch: epoch}
		for _, line := range input {
			f := strings.Fields(line) // d1 T1:0 T1:1
			dir := protocol.AssignReplicasToDirsRequestDirectoryData{Id: s.id(f[0])}
			for _, tp := range f[1:] {
				id, index, _ := strings.Cut(tp, ":")
				dir.Topics = append(dir.Topics, protocol.AssignReplicasToDirsRequestTopicData{TopicId: s.id(id), Partitions: []protocol.AssignReplicasToDirsRequestPartitionData{{PartitionIndex: ints([]string{index})[0]}}})
			}
			r.Directories = append(r.Directories, dir)
		}
		run(func(d *Draft) { resp = s.c.AssignReplicasToDirs(d, r) })
	case "alter-configs", "replace-configs":
		resp = s.alterConfigs(cmd, a, input, run)
	case "update-features":
		r := new(protocol.UpdateFeaturesRequest)
		r.Default()
		r.ValidateOnly = a.has("validate")
		for _, line := range input {
			if line == "" {
				continue
			}
			name, l := parse(strings.Fields(line))
			r.FeatureUpdates = append(r.FeatureUpdates, protocol.UpdateFeaturesRequestFeatureUpdateKey{Feature: name, MaxVersionLevel: int16(l.num("level", 0)), UpgradeType: int8(l.num("type", 1)), AllowDowngrade: l.has("downgrade")})
		}
		run(func(d *Draft) { resp = s.c.UpdateFeatures(d, s.caller(a), r) })
	case "register-controller":
		r := &protocol.ControllerRegistrationRequest{ControllerId: int32(a.num("id", 1)), IncarnationId: s.id(a["incarnation"])}
		r.Listeners = []protocol.ControllerRegistrationRequestListener{{Name: "CONTROLLER", Host: "h", Port: 9093}}
		r.Features = []protocol.ControllerRegistrationRequestFeature{{Name: image.FeatureMetadataVersion, MinSupportedVersion: 7, MaxSupportedVersion: int16(a.num("max", 33))}}
		run(func(d *Draft) { resp = s.c.RegisterController(d, r) })
	case "unregister-controller":
		run(func(d *Draft) {
			resp = s.c.UnregisterController(d, &protocol.UnregisterControllerRequest{ControllerId: int32(a.num("id", 1))})
		})
	case "producer-ids":
		run(func(d *Draft) {
			resp = s.c.AllocateProducerIds(d, &protocol.AllocateProducerIdsRequest{BrokerId: broker, BrokerEpoch: epoch})
		})
	case "partition":
		t, ok := s.img.Topics().ByName(a["topic"])
		if !ok {
			return "no topic\n"
		}
		p, _ := t.Partition(int32(a.num("index", 0)))
		dirs := []string{}
		for _, d := range p.Directories {
			dirs = append(dirs, s.value("", reflect.ValueOf(model.UUID(d))))
		}
		return fmt.Sprintf("replicas=%v dirs=%v isr=%v elr=%v last=%v leader=%d leaderEpoch=%d partitionEpoch=%d recovery=%d\n",
			p.Replicas, dirs, p.ISR, p.ELR, p.LastKnownELR, p.Leader, p.LeaderEpoch, p.PartitionEpoch, p.LeaderRecoveryState)
	case "broker":
		b, ok := s.img.Brokers().ByID(model.NodeID(broker))
		if !ok {
			return "none\n"
		}
		r := image.BrokerRecord(b, 33).Record.(*protocol.RegisterBrokerRecord)
		r.EndPoints, r.Features = nil, nil
		return s.show(r) + "\n"
	case "configs":
		var lines []string
		for res, values := range s.img.AllConfigs().All() {
			lines = append(lines, fmt.Sprintf("%d %q %v", res.Type, res.Name, values))
		}
		return strings.Join(lines, "\n") + "\n"
	default:
		s.t.Fatalf("unknown command %s", cmd)
	}
	if resp != nil {
		text := s.show(resp)
		if text == "" {
			text = "ok"
		}
		return text + "\n" + out.String()
	}
	if out.Len() == 0 {
		return "no records\n"
	}
	return out.String()
}

func (s *scene) alterConfigs(cmd string, a args, input []string, run func(func(*Draft))) any {
	types := map[string]int8{"topic": 2, "broker": 4, "logger": 8, "metrics": 16, "group": 32, "strange": 99}
	inc := &protocol.IncrementalAlterConfigsRequest{ValidateOnly: a.has("validate")}
	old := &protocol.AlterConfigsRequest{ValidateOnly: a.has("validate")}
	for _, line := range input {
		f := strings.Fields(line) // topic a set:k:v delete:k append:k:v
		kind, name, _ := strings.Cut(f[0], "=")
		i := protocol.IncrementalAlterConfigsRequestAlterConfigsResource{ResourceType: types[kind], ResourceName: name}
		o := protocol.AlterConfigsRequestAlterConfigsResource{ResourceType: types[kind], ResourceName: name}
		for _, op := range f[1:] {
			p := strings.SplitN(op, ":", 3)
			var value *string
			if len(p) == 3 {
				v := p[2]
				if n, ok := strings.CutPrefix(v, "long"); ok {
					k, _ := strconv.Atoi(n)
					v = strings.Repeat("1", k)
				}
				value = &v
			}
			kinds := map[string]int8{"set": 0, "delete": 1, "append": 2, "subtract": 3}
			i.Configs = append(i.Configs, protocol.IncrementalAlterConfigsRequestAlterableConfig{Name: p[1], ConfigOperation: kinds[p[0]], Value: value})
			o.Configs = append(o.Configs, protocol.AlterConfigsRequestAlterableConfig{Name: p[1], Value: value})
		}
		inc.Resources, old.Resources = append(inc.Resources, i), append(old.Resources, o)
	}
	var resp any
	run(func(d *Draft) {
		if cmd == "alter-configs" {
			resp = s.c.IncrementalAlterConfigs(d, s.caller(a), inc)
		} else {
			resp = s.c.AlterConfigs(d, s.caller(a), old)
		}
	})
	return resp
}
