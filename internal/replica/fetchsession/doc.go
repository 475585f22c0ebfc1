// Package fetchsession keeps fetch sessions (KIP-227): what a fetcher asked for and what it was told last, so that
// an idle fetch of a hundred partitions is a few bytes long.
//
// Kind: quiet. No goroutine and no clock: now is an argument. The cache is sharded, each shard behind a mutex; a
// session has its own mutex, held only inside Begin and Finish. Order: a session's, then a shard's.
//
// Use: Begin resolves a request into the partitions to read, in order; the caller reads them (replica/manager.Fetch)
// and hands what it found to Finish, which says which of them the response lists, and under which session id.
//
//	x, err := cache.Begin(now, req, resolve)   // err: session fault, top level only (T-54)
//	manager.Fetch(… x.Partitions() …, func(results) {
//	    id, include, err := x.Finish(now, results)
//	})
package fetchsession
