// Package partition decides what one replica of a partition does: whether it leads, which writes it takes, how far
// its high watermark goes, which in-sync set it proposes (KIP-497, KIP-966), and in which directory its log
// belongs (KIP-858).
//
// Kind: pure. The owner is replica/manager, which guards each Core with that replica's mutex and carries out what
// the Core answers.
//
// # The high watermark
//
// The high watermark is the end of what every in-sync replica has. A leader computes it as the least log end offset
// over itself, the maximal in-sync set (the committed one plus a pending addition; a pending removal still counts)
// and the replicas that are caught up and may join, so that these can join (D-147). It never moves back within a
// leadership, and not at all while the in-sync set is smaller than min.insync.replicas (D-31). With one replica that
// is: it moves with every append.
//
// A replica that the metadata drops from the in-sync set has to catch up again before the watermark waits for it
// once more. Kafka goes on waiting for up to replica.lag.time.max.ms, also for one whose disk is gone (J-191).
//
// # Proposals
//
// At most one change of the in-sync set is on its way (D-146). A proposal is a pointer: an answer counts only if it
// answers the very proposal that is pending; metadata of a later partition epoch makes it void, since the controller refuses it
// then. Metadata of the epoch it was made at does not: it may still be accepted.
package partition
