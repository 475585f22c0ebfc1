// Package manager hosts this broker's replicas: it appends for producers and coordinators, reads for
// consumers and followers, answers offset questions, and follows the metadata image by creating,
// electing, resigning and deleting logs.
//
// Kind: driver. Decisions about one replica live in replica/partition, bytes in storage/partlog, directories in
// storage/logdir, waiting in base/purgatory; this package carries them out.
//
// # Who calls on which goroutine
//
// Append, Fetch, ListOffsets, DeleteRecords and the rest may be called from any goroutine, and from many at
// once. A callback named done runs exactly once: on the caller's goroutine before the call returns when the
// answer is known at once, else later on the goroutine that made it true (another producer's append, a
// follower's fetch, a metadata change, the purgatory's timer). It must not block and must not call back into
// the same request's Manager method while holding a lock of its own that a caller of Append or Fetch also takes.
// Publish is called by the metadata loader alone, one image after another.
//
// # Locks
//
// The map of hosted replicas is an immutable snapshot behind an atomic pointer: finding one takes no lock.
// One mutex per replica guards its role (partition.Core); the log has its own append lock.
// Order: replica mutex, then the log's; never two replicas' mutexes at once; no callback runs under either.
package manager
