// Package logdir owns the log directories of a node: their identity and locks, the
// checkpoint files at their root, the logs inside them, and what happens when one of them
// fails.
//
// Kind: driver. The decisions (what a meta.properties means, which names are replicas, which
// directory takes a new log) are plain functions in their own files; Manager holds the
// goroutines and little else.
//
// # Files at the root of a log directory
//
//	meta.properties                    Java properties: version, cluster.id, node.id,
//	                                   directory.id (J-08), and samsa's directory.ids (J-14)
//	.lock                              empty, under an exclusive lock while a process runs
//	.kafka_cleanshutdown               {"version":0,"brokerEpoch":N}, only after a clean stop
//	recovery-point-offset-checkpoint   below this offset the log needs no recovery
//	log-start-offset-checkpoint        only where it lies above the first segment's base
//	replication-offset-checkpoint      high watermarks
//	cleaner-offset-checkpoint          first offset not yet compacted
//	TOPIC-PARTITION/                   a replica; its id is in partition.metadata
//	TOPIC-PARTITION.HEX-future/        a copy on its way from another directory
//	TOPIC-PARTITION.HEX-delete/        waiting file.delete.delay.ms for removal
//	TOPIC-PARTITION.HEX-stray/         belongs to nobody; left alone for the operator
//
// A checkpoint is text (D-41):
//
//	0            version
//	2            number of entries
//	foo 0 17     topic, partition, offset
//	foo 1 5
//
// and partition.metadata is
//
//	version: 0
//	topic_id: Rr22P56NSji_e-5OsqeU5A     Kafka's file ends here, without a line end
//	topic: foo                           these two for people, and for names that were
//	partition: 0                         cut; every Kafka stops reading above them (T-26)
//
// # Life of a Manager
//
//	Open   read meta.properties of every directory, give ids to those without, lock, list
//	Load   after the first metadata image: open the logs, set strays aside
//	Get, Create, Delete, Stray ...
//	Close  flush and close every log, write checkpoints, write the clean marker, unlock
//
// # Goroutines
//
// One scheduler goroutine per Manager (scheduler.go) sleeps until the next thing is due;
// Close ends it and waits. Load, Create of many, Delete of many, checkpoints and Close start
// a few goroutines per directory and wait for them. Nothing runs per partition.
//
// # Failure
//
// Every file call of a directory goes through its own vfs.Dir. The first storage error takes
// that directory, and nothing else, offline until the process ends (J-113); Manager then
// drops its logs and tells the listener given to OnOffline once.
package logdir
