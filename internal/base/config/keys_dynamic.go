package config

// Broker keys that exist only as dynamic configs.
var dynamicKeys = []Key{
	{Name: "follower.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Importance: Medium, Update: ClusterWide, Check: atLeast(0),
		Doc: "Bytes per second this broker takes in for throttled replicas it follows."},
	{Name: "leader.replication.throttled.rate", Type: Long, Default: "9223372036854775807", Importance: Medium, Update: ClusterWide, Check: atLeast(0),
		Doc: "Bytes per second this broker sends for throttled replicas it leads."},
	{Name: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Default: "9223372036854775807", Importance: Medium, Update: ClusterWide, Check: atLeast(0),
		Doc: "Bytes per second copied between this broker's own log directories."},
}
