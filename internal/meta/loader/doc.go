// Package loader turns committed metadata batches into images and hands each image, with what
// changed, to the publishers of this node in a fixed order.
//
// A node has one Loader, shared by its broker and its controller role. It follows the log (K-172):
// what the log hands over while a publication is under way is gathered and published as one step, so
// a node that is behind catches up in few large steps. Nothing is published before the node has
// caught up with the high watermark once (K-174, T-18); then each publisher gets the whole image as a
// difference from nothing, and after that deltas without gaps.
//
// A fault in one publisher is logged and counted and does not stop the others (K-176). A fault in the
// log itself is left out, counted, and ends the making of snapshots; on a controller it is fatal.
//
// Kind: driver. One goroutine, the loop, reads batches, builds images and calls all publishers; it
// ends with Close. HandleCommit and its kin are raft/node's; the rest may be called from anywhere.
package loader
