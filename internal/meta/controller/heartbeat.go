package controller

import (
	"bytes"
	"slices"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// BrokerHeartbeat keeps a session alive and moves the broker between fenced, unfenced and controlled
// shutdown (K-137 to K-144, J-67 to J-79).
func (c *Controller) BrokerHeartbeat(d *Draft, r *protocol.BrokerHeartbeatRequest) *protocol.BrokerHeartbeatResponse {
	resp := new(protocol.BrokerHeartbeatResponse)
	resp.Default()
	b, err := checkBrokerEpoch(d.Image(), r.BrokerId, r.BrokerEpoch)
	if err != nil {
		resp.ErrorCode = kerr.Code(err)
		return resp
	}
	beat := c.beats.contact(b.ID, b.Epoch, d.nowMs)
	beat.metadataOffset = max(beat.metadataOffset, r.CurrentMetadataOffset)
	resp.IsCaughtUp = r.CurrentMetadataOffset >= b.RegisteredAt

	mv := d.Image().Features().MetadataVersion()
	// Dead directories first: what follows must not give the broker leaders on one (J-74).
	lost := false
	if mv.DirectoryAssignment() {
		lost = c.directoriesOffline(d, b, r.OfflineLogDirs)
	}
	next := c.nextState(d.Image(), b, beat, r)
	if lost && next != stateShutDownNow {
		next = stateFenced // it has no directory left to serve from (J-75)
	}
	c.moveBroker(d, b, beat, next)
	if mv >= image.MetadataVersionCordon {
		cordonDirectories(d, b, r.CordonedLogDirs)
	}
	resp.IsFenced = next == stateFenced || next == stateShutDownNow
	resp.ShouldShutDown = next == stateShutDownNow
	return resp
}

// brokerState is what a broker may do (K-136).
type brokerState int8

const (
	stateFenced brokerState = iota
	stateUnfenced
	stateControlledShutdown
	stateShutDownNow
)

func stateOf(b *image.Broker) brokerState {
	switch {
	case b.Fenced: // being fenced ends a controlled shutdown (K-141)
		return stateFenced
	case b.InControlledShutdown:
		return stateControlledShutdown
	}
	return stateUnfenced
}

// nextState is the table of K-138.
func (c *Controller) nextState(img *image.Image, b *image.Broker, beat *beat, r *protocol.BrokerHeartbeatRequest) brokerState {
	switch now := stateOf(b); now {
	case stateFenced:
		switch {
		case r.WantShutDown:
			return stateShutDownNow
		case !r.WantFence && r.CurrentMetadataOffset >= b.RegisteredAt:
			return stateUnfenced
		}
		return stateFenced
	case stateUnfenced:
		switch {
		case r.WantFence && r.WantShutDown:
			return stateShutDownNow
		case r.WantFence:
			return stateFenced
		case r.WantShutDown && leads(img, b.ID):
			return stateControlledShutdown
		case r.WantShutDown:
			return stateShutDownNow
		}
		return stateUnfenced
	default:
		if leads(img, b.ID) || beat.shutdownOffset < 0 || beat.shutdownOffset > c.beats.lowestActiveOffset(img) {
			return stateControlledShutdown
		}
		return stateShutDownNow
	}
}

// moveBroker adds the records of a change of state (K-139).
func (c *Controller) moveBroker(d *Draft, b *image.Broker, beat *beat, next brokerState) {
	m := noMoves
	change := registrationChange(b)
	switch now := stateOf(b); {
	case next == stateControlledShutdown:
		if now != stateControlledShutdown {
			change.InControlledShutdown = 1
			d.add(change, 1)
		}
		m.remove = b.ID
		c.updateLeaderAndISR(d, m, inISR(b.ID))
		if beat.shutdownOffset < 0 {
			beat.shutdownOffset = d.end()
		}
	case now == next:
	case next == stateUnfenced:
		change.Fenced = -1
		d.add(change, 0)
		m.add = b.ID
		c.updateLeaderAndISR(d, m, leaderless)
	case now != stateFenced: // to fenced, or to shut down
		c.fence(d, b)
	}
}

// fence takes the broker out of every ISR and leadership and marks it.
func (c *Controller) fence(d *Draft, b *image.Broker) {
	m := noMoves
	m.remove = b.ID
	c.updateLeaderAndISR(d, m, inISR(b.ID))
	change := registrationChange(b)
	change.Fenced = 1
	d.add(change, 0)
	if beat := c.beats.beats[b.ID]; beat != nil {
		beat.shutdownOffset = -1
	}
}

func registrationChange(b *image.Broker) *protocol.BrokerRegistrationChangeRecord {
	r := new(protocol.BrokerRegistrationChangeRecord)
	r.Default()
	r.BrokerId, r.BrokerEpoch = int32(b.ID), b.Epoch
	return r
}

// directoriesOffline takes directories the broker lost out of service (J-73): first the leaders and
// ISRs of what lies in them, then the registration with those that remain. If none remains nothing
// can be written, since an empty list reads as "no change"; it then reports so (J-75).
func (c *Controller) directoriesOffline(d *Draft, b *image.Broker, offline []model.UUID) (lastLost bool) {
	var gone, left []model.DirectoryID
	for _, dir := range b.Directories {
		if slices.Contains(offline, model.UUID(dir)) {
			gone = append(gone, dir)
		} else {
			left = append(left, dir)
		}
	}
	if len(gone) == 0 {
		return false
	}
	if len(left) == 0 {
		return true
	}
	c.leaveDirectories(d, b, gone)
	slices.SortFunc(left, compareSigned)
	change := registrationChange(b)
	change.LogDirs = image.UUIDs(left)
	d.add(change, 2)
	return false
}

// leaveDirectories takes a broker out of the leadership and ISR of what lies in directories it lost.
func (c *Controller) leaveDirectories(d *Draft, b *image.Broker, gone []model.DirectoryID) {
	if len(gone) == 0 {
		return
	}
	beat := c.beats.contact(b.ID, b.Epoch, d.nowMs)
	if beat.offline == nil {
		beat.offline = map[model.DirectoryID]bool{}
	}
	for _, dir := range gone {
		beat.offline[dir] = true
	}
	m := noMoves
	m.remove = b.ID
	c.updateLeaderAndISR(d, m, func(p *image.Partition) bool {
		dir, ok := p.Directory(b.ID)
		return ok && slices.Contains(gone, dir) && inISR(b.ID)(p)
	})
}

// compareSigned orders ids as Kafka's Uuid does: two signed halves (J-49).
func compareSigned(a, b model.DirectoryID) int {
	a[0] ^= 0x80
	b[0] ^= 0x80
	if c := bytes.Compare(a[:8], b[:8]); c != 0 {
		return c
	}
	a[8] ^= 0x80
	b[8] ^= 0x80
	return bytes.Compare(a[8:], b[8:])
}

// cordonDirectories stores which directories take no new replicas, when that changed. The first word
// after a registration always counts, even if it is "none" (J-181).
func cordonDirectories(d *Draft, b *image.Broker, cordoned []model.UUID) {
	if cordoned == nil {
		return // the broker does not know yet
	}
	if b.Cordoned != nil && sameSet(b.Cordoned, cordoned) {
		return
	}
	change := registrationChange(b)
	change.CordonedLogDirs = cordoned
	d.add(change, 3)
}

func sameSet(a []model.DirectoryID, b []model.UUID) bool {
	for _, x := range a {
		if !slices.Contains(b, model.UUID(x)) {
			return false
		}
	}
	for _, y := range b {
		if !slices.Contains(a, model.DirectoryID(y)) {
			return false
		}
	}
	return true
}

// FenceStale fences one unfenced broker whose session has ended (K-126, K-140). One at a time, so
// that the choice of new leaders sees each of them gone; more is true if it found one.
func (c *Controller) FenceStale(d *Draft) (fenced model.NodeID, more bool) {
	img := d.Image()
	for b := range img.Brokers().All() {
		if b.Fenced {
			continue
		}
		if !c.beats.live(b.ID, b.Epoch, d.nowMs) {
			c.fence(d, b)
			return b.ID, true
		}
	}
	return model.NoNode, false
}
