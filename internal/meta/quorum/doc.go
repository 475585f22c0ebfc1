// Package quorum runs the controller: it follows the metadata log as a standby, takes over when this
// node leads the quorum, and then decides, appends and answers.
//
// One goroutine, the loop, owns everything that changes. A request becomes an operation in its queue.
// While active the loop takes operations in order (K-118, K-119):
//
//	decide   on the newest image, uncommitted records included, by meta/controller
//	append   to the metadata log, without waiting for the disk
//	apply    the decision's image is the newest one at once
//	park     the answer, until the high watermark passes the last record
//
// It goes on deciding while the disk works, so one fsync carries all that came meanwhile. Images are
// immutable and share structure: an uncommitted decision is a pointer, and losing leadership drops
// all pointers after the last committed one (K-121).
//
// On a standby, committed batches become images as they come (K-129), so taking over reads nothing.
//
// Kind: driver. Goroutines: the loop, ended by Close; the registrar, which tells the active
// controller how this one is reached, ended by Close. Methods named after APIs may be called from any
// goroutine; the Handle methods and BeginShutdown are raft/node's.
package quorum
