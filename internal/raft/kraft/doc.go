// Package kraft is KRaft consensus (KIP-595, 630, 853, 996) as a state machine without clock, goroutine,
// lock or I/O. One Core is one replica of __cluster_metadata-0: voter, observer or single voter.
//
// Kind: pure. Time and randomness are arguments; nothing here blocks. A Core belongs to one caller at a time.
//
// # Shape
//
// The caller feeds what happened (Request, Response, Append, Synced, Tick …) and takes Effects: an ordered
// list of what to do. The order is the contract:
//
//  1. effects are carried out one after the other, in order;
//  2. SaveState is durable before the next effect starts (K-14);
//  3. Append and Truncate change the log before the next effect starts, but may be volatile until a Sync;
//     once a Sync is done the caller says so with Core.Synced, and only then does the core count the bytes:
//     towards the high watermark on a leader (K-49), as an acknowledging fetch offset on a follower (K-50);
//  4. a crash may cut the list anywhere.
//
// The core never holds record bytes longer than one step: it knows the log by its shape (start, end, epochs,
// snapshots, control records), and tells the caller what to read when it answers a fetch.
//
// # Who may be believed
//
// Requests come from the network: whatever they hold, the core answers with an error and lives (K-32, K-38..K-48).
// Only what breaks the log's own promises (truncation below the high watermark, two leaders in one epoch claimed
// by a leader's own answer) ends in a Fatal effect.
package kraft
