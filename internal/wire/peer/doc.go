// Package peer is connections to other nodes: broker to controller, broker to broker, voter to voter.
//
// Kind: driver. A Client keeps at most one connection per address, made when it is first needed and made again after
// it broke, not before a back-off that grows with every failure. One goroutine per connection reads answers; requests
// are written by the goroutines that send them.
//
// # One connection
//
// Requests are pipelined: many may be on their way, and the answers come in the same order (Kafka handles one
// request of a connection at a time). The first exchange is ApiVersions; every later request goes at the highest version
// both sides know. A waiting caller is bound by its context. When its deadline passes the connection is closed, since
// nothing behind a missing answer can arrive; a cancelled caller only stops waiting.
//
// # Hostile answers
//
// A frame longer than Options.MaxFrame, shorter than a header, with a correlation id that is not the next one, or a body
// that does not decode closes the connection with an error for all who wait. Memory for a frame grows with the bytes that
// have come, not with the length it claims.
//
// # To the controller
//
// Controller sends to whatever node is the active controller now, following it when it moves (K-185). One request at a
// time per Controller; heartbeats, forwarding and directory reports each have their own, with their own connection, so that
// none waits behind another.
package peer
