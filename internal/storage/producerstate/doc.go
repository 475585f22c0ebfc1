// Package producerstate remembers, for one partition, what every idempotent or transactional producer wrote last
// (KIP-98, KIP-360, KIP-890), and which transactions are open or not yet replicated.
//
// Kind: pure. A State has one owner and no lock; now is an argument.
//
// An append is two steps, so that a refused or failed write leaves no trace: Prepare checks a batch and returns an
// Update; Apply makes it part of the state once the bytes are written.
//
// # The .snapshot file (D-50)
//
//	int16 version (1) | uint32 CRC-32C of what follows | int32 count | count entries of 46 bytes:
//	int64 producerId | int16 epoch | int32 lastSequence | int64 lastOffset | int32 offsetDelta |
//	int64 timestamp | int32 coordinatorEpoch | int64 currentTxnFirstOffset (-1 none)
//
// # The .window file
//
// Kafka's snapshot keeps the newest batch of each producer only. samsa remembers all five, each with its time, over a restart, in a file of
// its own beside the snapshot, with the same base name, which Kafka ignores:
//
//	int16 version (0) | uint32 CRC-32C of what follows | uint32 CRC field of the snapshot it belongs to | int32 count |
//	count producers: int64 producerId | int16 epoch | int8 n |
//	n batches, oldest first: int32 lastSequence | int64 lastOffset | int32 offsetDelta | int64 timestamp
//
// A window file that does not belong to the snapshot beside it (Kafka wrote a newer one) is ignored.
package producerstate
