// Package runtime runs the group coordinator: one shard for each partition of __consumer_offsets that this
// broker leads.
//
// Kind: driver. A shard is a group.Core and a mailbox. A goroutine exists only while its mailbox holds
// something: it hands requests to the core, appends the core's batches in order, runs the answers, sets one
// time.AfterFunc for the core's next deadline, and ends. Loading has a goroutine of its own, during which
// requests get COORDINATOR_LOAD_IN_PROGRESS (D-153). Idle costs nothing.
//
// # Concurrency properties
//
// A method of Groups never blocks: it puts the request into a mailbox, and the answer comes later from the shard's goroutine,
// or at once from the caller's when there is no such shard. Every request is answered exactly once.
// The callback of an append may run inline or on any goroutine; it only puts a message into
// the mailbox. No lock is held while appending, answering or loading.
package runtime
