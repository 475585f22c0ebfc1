// Package node drives one kraft.Core: it owns the metadata log __cluster_metadata-0 (segments, snapshots,
// quorum-state), the timers and the sockets of one raft replica, and hands committed records to listeners.
//
// Kind: driver. Goroutines of a Node:
//
//	loop      owns the core, the log and the quorum-state file; ended by Stop or by a fatal error
//	dispatch  reads committed batches and calls the listeners, one at a time, in order; ended by Stop
//
// Every exported method may be called from any goroutine unless it says otherwise.
package node
