// Package storagetool formats log directories and looks at them: `samsa storage format`, `info` and
// their kin, with the flags, texts and exit codes of Kafka's kafka-storage.sh (J-25..J-34, K-101..K-109).
//
// Kind: driver. It stands on storage/logdir and raft/node, whose files it writes, and the clock and random ids it is
// not handed are the system's. Files are reached through a vfs.FS; no goroutine.
//
// # What format writes
//
// Into each directory that has no meta.properties, in order of the paths:
//
//	DIR/                               made if missing
//	DIR/__cluster_metadata-0/          metadata directory of a controller only
//	  00000000000000000000-0000000000.checkpoint
//	DIR/bootstrap.checkpoint           metadata directory of a controller only
//	DIR/meta.properties                last: without it the directory is not formatted, and
//	                                   a format that was cut short is simply run again
//
// The first control batch of the checkpoint is the snapshot header, then KRaftVersion and
// Voters where the quorum is dynamic. The first metadata records (features, SCRAM users) are read by
// Kafka 4.0 to 4.3 from bootstrap.checkpoint alone and by 4.4 from either; see Checkpoint (K-105).
package storagetool
