// Package rate holds the limiters of the product: a token bucket that may be overdrawn, the
// sampled rate Kafka's quotas are measured with, and the throttle time both of them ask for.
//
// Kind: pure. Now is always an argument, nothing sleeps, nothing locks; a limiter belongs to
// whoever owns it.
//
// Client quotas (KIP-13, KIP-124; D-199) and replication quotas (KIP-73) use Sampled, controller
// mutations (KIP-599) use Bucket: the numbers an operator sees must be those of Kafka.
package rate
