// Package api serves Kafka's requests: one file per API key, named by it, with the versions and
// what changed in them on top.
//
// Kind: driver. Files decode, look names and ids up in one metadata image held for the whole
// request, call the floor below, and encode; decisions live below.
//
//	server.go       what a node needs to serve, and the dispatch of a request to its file
//	listeners.go    which keys and versions each listener offers (api-versions-4.4)
//	forward.go      carrying a request to the active controller (K-186, K-187)
//
// A handler runs on the read loop of its connection. One that must wait hands its work to a
// callback (replica/manager, coord) or to Server.async, after copying what it keeps of the
// request: the body is borrowed until the handler returns.
//
// Errors inside are kerr errors or wrap one; only this package turns them into codes (habit 11).
package api
