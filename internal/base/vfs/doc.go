// Package vfs is the seam between samsa and the disks: every byte that is read
// from or written to a file goes through an FS.
//
// Kind: quiet. It starts no goroutines and reads no clock; the slow-call observer
// is handed one. An FS and a File may be used from many goroutines at once.
//
//	OS         the operating system's files: pread, pwrite, pwritev, fdatasync; never mmap
//	Mem        files in memory that can crash: CrashClone keeps what was synced and a
//	           random part of the rest
//	Dir        one log directory: classifies errors, and goes offline at the first one
//	           that means "this directory is bad" (KIP-112, KIP-858)
//	Inject     asks a function before every call; for faults and for traces
//	Count      counts calls by kind
//	Observe    reports slow calls and the oldest call still running
//
// Wrappers nest; the usual stack of a log directory is Dir(Observe(OS())).
//
// Why no mmap: a fault on a mapped page is a signal that ends a Go process, a
// failed pread is an error that ends one directory (design decision 7).
//
// # Durability
//
//   - What WriteAt, WriteV and Truncate changed survives a crash after Sync of the file.
//   - A created, renamed or removed name survives a crash after SyncDir of its directory;
//     a rename is atomic, before and after a crash.
//   - After a failed Sync nobody knows what is on the disk: do not retry (Dir refuses to).
package vfs
