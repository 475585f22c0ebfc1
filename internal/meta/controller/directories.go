package controller

import (
	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// AssignReplicasToDirs stores in which directories a broker keeps replicas (J-80 to J-87). Good
// partitions are stored even if others are refused.
func (c *Controller) AssignReplicasToDirs(d *Draft, r *protocol.AssignReplicasToDirsRequest) *protocol.AssignReplicasToDirsResponse {
	resp := new(protocol.AssignReplicasToDirsResponse)
	resp.Default()
	v := c.view(d.Image())
	if !v.mv.DirectoryAssignment() {
		resp.ErrorCode = kerr.UnsupportedVersion.Code
		return resp
	}
	b, err := checkBrokerEpoch(v.img, r.BrokerId, r.BrokerEpoch)
	if err != nil {
		resp.ErrorCode = kerr.Code(err)
		return resp
	}
	// The last word on a partition wins, one record for it (J-82).
	type wish struct {
		topic *image.Topic
		index int32
		part  *image.Partition
		dir   model.DirectoryID
	}
	var order []model.TopicIDPartition
	wishes := map[model.TopicIDPartition]wish{}
	known := c.knownDirectories(v, b)
	for _, dir := range r.Directories {
		outDir := protocol.AssignReplicasToDirsResponseDirectoryData{Id: dir.Id}
		for _, topic := range dir.Topics {
			outTopic := protocol.AssignReplicasToDirsResponseTopicData{TopicId: topic.TopicId}
			for _, p := range topic.Partitions {
				code := int16(0)
				key := model.TopicIDPartition{Topic: model.TopicID(topic.TopicId), Partition: p.PartitionIndex}
				t, part, ok := v.img.Topics().Partition(key)
				switch {
				case t == nil:
					code = kerr.UnknownTopicId.Code
				case !ok:
					code = kerr.UnknownTopicOrPartition.Code
				case !part.IsReplica(b.ID):
					code = kerr.NotLeaderOrFollower.Code
				case !known(model.DirectoryID(dir.Id)):
					code = kerr.LogDirNotFound.Code
				default:
					if _, twice := wishes[key]; !twice {
						order = append(order, key)
					}
					wishes[key] = wish{t, p.PartitionIndex, part, model.DirectoryID(dir.Id)}
				}
				outTopic.Partitions = append(outTopic.Partitions, protocol.AssignReplicasToDirsResponsePartitionData{PartitionIndex: p.PartitionIndex, ErrorCode: code})
			}
			outDir.Topics = append(outDir.Topics, outTopic)
		}
		resp.Directories = append(resp.Directories, outDir)
	}

	var follow []model.TopicIDPartition
	for _, key := range order {
		w := wishes[key]
		old, _ := w.part.Directory(b.ID)
		if old != w.dir {
			// Nothing but the directories: neither ELR nor leader (J-84, J-87).
			next := make([]model.DirectoryID, len(w.part.Replicas))
			for i, n := range w.part.Replicas {
				next[i], _ = w.part.Directory(n)
				if n == b.ID {
					next[i] = w.dir
				}
			}
			rec := new(protocol.PartitionChangeRecord)
			rec.Default()
			rec.TopicId, rec.PartitionId, rec.Directories = model.UUID(key.Topic), key.Partition, image.UUIDs(next)
			d.add(rec, v.mv.PartitionRecordVersion())
		}
		offline := !b.HasOnlineDir(w.dir)
		if offline && inISR(b.ID)(w.part) || !offline && !b.HasOnlineDir(old) && !w.part.HasLeader() {
			follow = append(follow, key)
		}
	}
	if len(follow) == 0 {
		return resp
	}
	// On top of the new directories: a replica in a dead one loses its places (J-85), one that came
	// back into a live one may lead what has no leader (J-86).
	after := c.view(d.Image())
	for _, key := range follow {
		t, p, ok := after.img.Topics().Partition(key)
		if !ok {
			continue
		}
		m := noMoves
		if !b.HasOnlineDir(wishes[key].dir) {
			m.remove = b.ID
		}
		after.moveLeaderAndISR(d, m, t, key.Partition, p)
	}
	return resp
}

// knownDirectories says which ids the broker may name: its registered ones, the reserved ones, and
// those that still stand for it in some partition because they failed (J-82).
func (c *Controller) knownDirectories(v *view, b *image.Broker) func(model.DirectoryID) bool {
	var failed map[model.DirectoryID]bool
	return func(dir model.DirectoryID) bool {
		if dir == model.DirLost || b.HasOnlineDir(dir) {
			return true
		}
		if failed == nil {
			failed = map[model.DirectoryID]bool{}
			for t := range v.img.Topics().All() {
				for _, p := range t.Partitions() {
					if id, ok := p.Directory(b.ID); ok {
						failed[id] = true
					}
				}
			}
		}
		if !failed[dir] {
			return c.beats.reportedOffline(b.ID, b.Epoch, dir)
		}
		return true
	}
}
