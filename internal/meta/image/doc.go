// Package image is the cluster's metadata at one offset of the metadata log: an immutable value
// built from records, and the difference between two such values.
//
// An Image never changes; NewDelta(base) takes records and Apply gives the next Image, which
// shares everything untouched with its base (base/pmap). Keeping many versions is cheap: the
// controller keeps one per uncommitted batch and rolls back by dropping pointers. A request
// handler takes one *Image and uses it for all its lookups, so that an answer never pairs facts
// of two moments (T-15).
//
// Everything reached from an Image is shared and must not be modified: slices, maps and pointed-to
// structs alike.
//
// What is here, one file per kind:
//
//	image.go      Image, Provenance
//	topics.go     topics by name and id, partitions, name collisions
//	cluster.go    brokers and controllers
//	features.go   finalized features, metadata.version and what each level turns on
//	configs.go    dynamic configs
//	quotas.go     client quotas
//	security.go   ACLs, SCRAM credentials, delegation tokens
//	delta.go      Delta: what changed between two images
//	replay_*.go   one record at a time into the next image
//	write.go      an image as records: the content of a snapshot, in Kafka's order
//	frame.go      the bytes of one metadata record
//
// Kind: pure. Images may be read from any goroutine; a Delta belongs to one until Apply.
package image
