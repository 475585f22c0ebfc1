// Package group is the group coordinator of one partition of __consumer_offsets: classic consumer groups
// and committed offsets.
//
// Kind: pure. A Core has one owner; the time is an argument (milliseconds since 1970), member ids come
// from a function it was handed, and nothing blocks.
//
//	core.Join(now, caller, request, reply)   a request enters, with where its answer goes
//	e := core.Effects()                      what to append, whom to answer, when to wake it
//	core.Appended(now, batch.ID, err)        the batch is committed, or never will be
//	core.Tick(now)                           the deadline has come
//
// # Decide, log, apply
//
// What a request changes is changed at once, so that the next request sees it; the answer waits until
// the records are committed. Offsets keep the committed value beside the ones still on their way:
// OffsetFetch sees only what is committed (D-168), and a failed append takes its values back. A group whose
// assignment cannot be stored goes back to a rebalance with empty assignments (D-160).
//
// # Records
//
// Keys are int16 type and fields, values int16 version and fields (protocol.AppendRecordKey,
// AppendVersioned). This package writes type 1 (offset, value version 4, or 1 with an explicit expiry) and type 2
// (classic group, value version 3), and reads 0, 1 and 2. All other types belong to groups of other kinds: they are
// left alone on load, their groups are remembered, and classic requests for them are refused, so
// that no partition holds one group in two forms.
//
// # Timers
//
// Timers are values in one heap. Moving a deadline later costs nothing: the heap entry stays and is
// put back when it comes up early. There is no ticking: Effects.Deadline is when Tick is due next.
package group
