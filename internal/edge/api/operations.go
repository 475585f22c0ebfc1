package api

// The operations a caller may do, as a bit per operation code: what answers that include authorized
// operations say while nobody is restricted. The bits are the operations each kind of resource knows.
const (
	topicOperations   int32 = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11 // read write create delete alter describe describe-configs alter-configs
	groupOperations   int32 = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11                      // read delete describe describe-configs alter-configs
	clusterOperations int32 = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12       // create alter describe cluster-action describe-configs alter-configs idempotent-write
)
