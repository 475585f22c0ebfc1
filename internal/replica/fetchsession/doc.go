// Package fetchsession keeps fetch sessions (KIP-227): what a fetcher asked for and what it was told last, so that
// an idle fetch of a hundred partitions is a few bytes long.
//
// Kind: quiet. No goroutine and no clock: now is an argument. The cache is sharded, each shard behind a mutex; a
// session has its own mutex, held only inside Begin and Finish.
//
// Use: Begin resolves a request into the partitions to read, in order; the caller reads them (replica/manager.Fetch)
// and hands what it found to Finish, which says which of them the response lists, and under which session id.
//
//	ctx, err := cache.Begin(now, req)      // err: session fault, top-level only (T-54)
//	manager.Fetch(… ctx.Partitions() …, func(results) {
//	    id, include := ctx.Finish(now, results)
//	})
package fetchsession
