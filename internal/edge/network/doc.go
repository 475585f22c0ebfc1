// Package network accepts connections, cuts their bytes into requests, and sends the answers
// back in the order the requests came.
//
// Kind: driver.
//
//	frame    = size int32, then size bytes: the request header and the body
//	response = size int32, then correlation id int32, a tag section where flexible, the body
//
// # Goroutines
//
// One accept loop per listener and one read loop per connection. The read loop calls
// Handler.Serve for each request, so a handler that cannot block answers on the spot and no
// request changes goroutines. A handler that must wait keeps the *Request and calls Reply from
// anywhere, later, exactly once.
//
// Answers leave through one ordered queue per connection. Whoever completes the answer at the
// head of the queue writes it, and those behind it that are complete, in one system call; when
// the socket is full a goroutine of its own waits for it, so that a slow reader never holds up
// anyone else. While the read loop still has whole requests in its buffer the queue is corked:
// a pipelined burst is answered in one write.
//
// # Order
//
// A request starts while an earlier one is still waiting only if the earlier one's key is
// overlapping (Options.Overlaps: Produce waiting for replicas, Fetch waiting for bytes). Else the read
// loop stands still, which is what Kafka does for every request.
//
// # Memory
//
// A parked connection holds no buffer. A buffer is taken when bytes arrive, grows only as they
// do (a declared size buys nothing), and what exceeds smallBuffer is charged to one budget for the whole
// server; when that is spent, connections are simply not read until others finish. The body of a
// request aliases the buffer and is borrowed until Serve returns.
package network
