package controller

import (
	"math"

	"samsa/internal/base/model"
	"samsa/internal/meta/image"
)

// Heartbeats is the soft state of brokers: when each was last heard and how far it has read. It is
// kept by the active controller alone and starts anew with each term.
type Heartbeats struct {
	sessionTimeoutMs int64
	beats            map[model.NodeID]*beat
}

type beat struct {
	epoch          int64 // of the incarnation that was heard
	contactMs      int64
	metadataOffset int64 // the last offset the broker has applied, -1 unknown
	shutdownOffset int64 // end of the records that began its controlled shutdown, -1 none
	// offline are directories that were registered and that this incarnation reported as failed.
	offline map[model.DirectoryID]bool
}

// NewHeartbeats returns an empty one.
func NewHeartbeats(sessionTimeoutMs int64) *Heartbeats {
	h := &Heartbeats{sessionTimeoutMs: sessionTimeoutMs}
	h.reset()
	return h
}

func (h *Heartbeats) reset() { h.beats = map[model.NodeID]*beat{} }

// contact notes that an incarnation was heard.
func (h *Heartbeats) contact(id model.NodeID, epoch, nowMs int64) *beat {
	b := h.beats[id]
	if b == nil || b.epoch != epoch {
		b = &beat{epoch: epoch, metadataOffset: -1, shutdownOffset: -1}
		h.beats[id] = b
	}
	b.contactMs = max(b.contactMs, nowMs)
	return b
}

// Touch notes a heartbeat outside the order of decisions: also one that will time out in the queue
// keeps its session (K-140). A wrong epoch has no effect.
func (h *Heartbeats) Touch(img *image.Image, id model.NodeID, epoch, nowMs int64) {
	if b, ok := img.Brokers().ByID(id); ok && b.Epoch == epoch {
		h.contact(id, epoch, nowMs)
	}
}

// LastContactMs is when the broker was last heard in this term.
func (h *Heartbeats) LastContactMs(id model.NodeID) (ms int64, ok bool) {
	b := h.beats[id]
	if b == nil {
		return 0, false
	}
	return b.contactMs, true
}

// live reports whether the incarnation has a session.
func (h *Heartbeats) live(id model.NodeID, epoch, nowMs int64) bool {
	b := h.beats[id]
	return b != nil && b.epoch == epoch && nowMs-b.contactMs < h.sessionTimeoutMs
}

// reportedOffline: the directory was the broker's and it said that it failed.
func (h *Heartbeats) reportedOffline(id model.NodeID, epoch int64, dir model.DirectoryID) bool {
	b := h.beats[id]
	return b != nil && b.epoch == epoch && b.offline[dir]
}

func (h *Heartbeats) forget(id model.NodeID) { delete(h.beats, id) }

// NextExpiryMs is when the first session of an unfenced broker ends; ok is false if there is none.
func (h *Heartbeats) NextExpiryMs(img *image.Image) (ms int64, ok bool) {
	ms = math.MaxInt64
	for b := range img.Brokers().All() {
		if b.Fenced {
			continue
		}
		contact := int64(0) // an unfenced broker never heard has no session
		if beat := h.beats[b.ID]; beat != nil && beat.epoch == b.Epoch {
			contact = beat.contactMs
		}
		ms, ok = min(ms, contact+h.sessionTimeoutMs), true
	}
	return ms, ok
}

// lowestActiveOffset is how far every active broker has read; the highest number if none is active.
func (h *Heartbeats) lowestActiveOffset(img *image.Image) int64 {
	lowest := int64(math.MaxInt64)
	for b := range img.Brokers().All() {
		if !b.Active() {
			continue
		}
		offset := int64(-1)
		if beat := h.beats[b.ID]; beat != nil && beat.epoch == b.Epoch {
			offset = beat.metadataOffset
		}
		lowest = min(lowest, offset)
	}
	return lowest
}
