// Package server puts a node together from its configuration, starts it and stops it. It is the only
// package that knows everybody.
//
// Kind: driver. Start and Stop follow numbered lists (node.go); the parts own their goroutines.
//
//	node.go       Node: Start, Wait, Stop
//	metadata.go   the metadata log, the controller and its listener, the loader
//	broker.go     log directories, replicas, coordinators, registration, the broker listeners
//	sockets.go    binding listeners and the addresses that are advertised
//	http.go       /metrics, /healthz, /readyz
//	metrics.go    what is shown there
package server
