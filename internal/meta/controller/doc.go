// Package controller holds the decisions of the active controller: from an image of the metadata,
// the heartbeats heard, a request and the time to records and a response.
//
// A decision is a method of Controller that is given a Draft: the newest image, uncommitted records
// included, to which it adds records. It answers with the whole protocol response, item errors and
// all. Whoever drives (meta/quorum) appends the records, takes the Draft's image as the newest one,
// and answers when they are committed; to forget a decision is to drop its Draft.
//
// What the controller must know beyond the image is soft: when each broker was last heard and how
// far it has read (Heartbeats). Indexes such as "partitions a broker is in the ISR of" are not kept:
// the few decisions that need them walk the image, which costs a millisecond per 100,000 partitions
// and cannot get out of step when a leader is deposed.
//
// One file per kind of request; partition_change.go is the heart that all elections go through.
//
// Kind: pure. Time, randomness and ids are arguments; one goroutine owns a Controller.
package controller
