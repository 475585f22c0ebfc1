package config

// Keys only samsa has. A Kafka started on the same file warns about them and goes on.
var samsaKeys = []Key{
	{Name: "samsa.http.listener", Type: String, Default: "127.0.0.1:8080", Importance: Medium, Samsa: true,
		Doc: "Where /metrics, /healthz and /readyz are served, as host:port; empty serves them nowhere. Loopback unless told otherwise: there is no login."},
	{Name: "samsa.request.receive.timeout.ms", Type: Int, Default: "60000", Importance: Low, Check: atLeast(1), Samsa: true,
		Doc: "A request that has begun to arrive must be complete after this time."},
	{Name: "samsa.response.send.timeout.ms", Type: Int, Default: "60000", Importance: Low, Check: atLeast(1), Samsa: true,
		Doc: "A client that does not take a response for this long is disconnected."},
	{Name: "samsa.connection.auth.timeout.ms", Type: Int, Default: "10000", Importance: Low, Check: atLeast(1), Samsa: true,
		Doc: "TLS handshake and login together must be done after this time."},
	{Name: "samsa.request.memory.bytes", Type: Long, Default: "-1", Importance: Medium, Check: atLeast(-1), Samsa: true,
		Doc: "The most bytes of requests in flight when queued.max.request.bytes sets no limit; -1 is a quarter of the memory limit."},
	{Name: "delete.stale.topic.delay.ms", Type: Long, Default: "-1", Importance: Low, Check: atLeast(-1), Samsa: true,
		Doc: "Replicas of topics that no longer exist, found when a directory comes back, are deleted after this time; -1 keeps them, renamed."},
	{Name: "partition.metadata.details.enable", Type: Boolean, Default: "true", Importance: Low, Samsa: true,
		Doc: "Write more than version and topic id into new partition.metadata files, where Kafka ignores it."},
}
