// Package partlog is one partition's log in exactly Kafka's on-disk format: segments with their offset, time and
// transaction indexes, producer snapshots and the leader-epoch file. The metadata log __cluster_metadata-0 is one too.
//
// Kind: quiet. No goroutine, timer or clock: now is an argument, I/O goes through the vfs.FS it was handed. Work to
// be done later (flush after a roll, unlinking of discarded files) is handed to the owner through Env.
//
// # Locks
//
// Two per log, in this order:
//
//	write  held by whoever changes the log (append, roll, truncate, delete, flush bookkeeping, close), across its I/O
//	mu     guards what readers look at: segment list, log start, log end, high watermark, index tails.
//	       Never held across I/O, so a reader waits for nobody's write and nobody's fsync.
//
// fsync runs under a third, sync, which orders flushes among themselves and nothing else. Reading a file needs no
// lock: closed segments never change, and of the active one only bytes below the published end are read. A file that is truncated or
// deleted under a reader ends its read early, which it sees as an empty slice.
//
// # Who checks what
//
// The caller of AppendAsLeader has run record.ValidateProduce on client records, outside any lock: nothing it checks
// depends on the log. AppendAsLeader walks the headers, checks producer state, assigns offsets and the leader epoch in
// place and writes. AppendAsFollower also checks CRCs.
//
// # What is durable
//
// Nothing before Flush, except that a clean Close and the recovery point speak the truth: everything below RecoveryPoint was
// synced. leader-epoch-checkpoint is written when it has to be, not when an epoch begins: see epochfile.go.
package partlog
