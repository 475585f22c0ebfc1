// Package dirassign tells the controller which directory holds which replica (KIP-858, AssignReplicasToDirs).
//
// Kind: driver. One goroutine sends; the queue (at most one report per partition, the newest wins, batching,
// back-off) is the pure part in queue.go.
package dirassign

import "samsa/internal/base/model"

// Assigner queues reports and sends them.
type Assigner struct{}

// Report queues "the replica of tp on this broker is in dir". urgent skips the batching wait (J-90). done, if not
// nil, runs exactly once: with nil when the controller acknowledged this very report, else with why not (J-93).
func (a *Assigner) Report(tp model.TopicIDPartition, dir model.DirectoryID, urgent bool, done func(error)) {
	panic("pending")
}

// Pending is how many reports are queued or unacknowledged.
func (a *Assigner) Pending() int { panic("pending") }

// Close ends the sender; queued reports are dropped with context.Canceled.
func (a *Assigner) Close() { panic("pending") }
