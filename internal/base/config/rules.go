package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"samsa/internal/base/model"
)

// checker collects broken rules; a rule that needs a bad value is not asked.
type checker struct {
	*view
	out []failure
}

// must is a rule of which Kafka gives the text alone, require one with "requirement failed: ".
func (c *checker) must(ok bool, key, format string, args ...any) bool {
	if !ok {
		c.out = append(c.out, failure{key: key, text: fmt.Sprintf(format, args...)})
	}
	return ok
}

func (c *checker) require(ok bool, key, format string, args ...any) bool {
	if !ok {
		c.out = append(c.out, failure{key: key, text: fmt.Sprintf(format, args...), scala: true})
	}
	return ok
}

func (c *checker) fail(key string, err error) bool { return c.must(err == nil, key, "%s", text(err)) }

// rules checks what one value alone cannot show and fills the derived fields of n: roles,
// listeners, directories, quorum.
func (c *checker) rules(n *Node) {
	c.identity(n)
	c.logs(n)
	c.replication()
	c.listeners(n)
	c.connections()
	c.groups()
}

func (c *checker) identity(n *Node) {
	if c.sane("node.id", "broker.id") {
		n.NodeID = model.NodeID(c.int("node.id"))
		c.must(c.int("node.id") == c.int("broker.id"), "broker.id",
			"`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, please use `node.id` instead.")
	}
	roles := c.list("process.roles")
	n.Broker = slices.Contains(roles, "broker")
	n.Controller = slices.Contains(roles, "controller")
	n.Rack = c.text("broker.rack")
}

func (c *checker) logs(n *Node) {
	if c.sane("log.roll.ms", "log.roll.hours") {
		c.require(c.rollMs() >= 1, "log.roll.ms", "log.roll.ms must be greater than or equal to 1")
	}
	if c.sane("log.roll.jitter.ms", "log.roll.jitter.hours") {
		c.require(c.rollJitterMs() >= 0, "log.roll.jitter.ms", "log.roll.jitter.ms must be greater than or equal to 0")
	}
	if c.sane("log.retention.ms", "log.retention.minutes", "log.retention.hours") {
		ms := c.retentionMs()
		c.require(ms >= 1 || ms == -1, "log.retention.ms", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
	}
	if c.sane("log.dirs", "log.dir") {
		n.LogDirs = c.logDirs()
		c.require(len(n.LogDirs) > 0, "log.dirs", "At least one log directory must be defined via log.dirs or log.dir.")
		n.MetadataLogDir = c.text("metadata.log.dir")
		if c.isNull("metadata.log.dir") && len(n.LogDirs) > 0 {
			n.MetadataLogDir = n.LogDirs[0]
		}
	}
	if c.sane("log.cleaner.dedupe.buffer.size", "log.cleaner.threads") && c.int("log.cleaner.threads") > 0 {
		c.require(c.long("log.cleaner.dedupe.buffer.size")/c.long("log.cleaner.threads") > 1<<20, "log.cleaner.dedupe.buffer.size",
			"log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
	}
}

func (c *checker) cordoned(n *Node) {
	if !c.sane("cordoned.log.dirs", "log.dirs", "log.dir") {
		return
	}
	const key = "cordoned.log.dirs"
	dirs := c.list(key)
	n.CordonedLogDirs = dirs
	if slices.Contains(dirs, "*") {
		c.require(len(dirs) == 1, key, "When cordoned.log.dirs is set to *, it must not contain other values")
		n.CordonedLogDirs = n.LogDirs
		return
	}
	var unknown []string
	for _, d := range dirs {
		if !slices.Contains(n.LogDirs, d) {
			unknown = append(unknown, d)
		}
	}
	c.require(unknown == nil, key, "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : %s", strings.Join(unknown, ", "))
}

func (c *checker) replication() {
	const wait = "replica.fetch.wait.max.ms"
	if c.sane(wait, "replica.socket.timeout.ms") {
		c.require(c.int(wait) <= c.int("replica.socket.timeout.ms"), "replica.socket.timeout.ms",
			"replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts")
	}
	if c.sane(wait, "replica.lag.time.max.ms") {
		c.require(c.long(wait) <= c.long("replica.lag.time.max.ms"), wait,
			"replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR")
	}
}

// hostChars are the characters Kafka allows in a host.
var hostChars = regexp.MustCompile(`^[0-9a-zA-Z\-%._:]*$`)

func (c *checker) connections() {
	if c.sane("queued.max.request.bytes", "socket.request.max.bytes") {
		q := c.long("queued.max.request.bytes")
		c.require(q <= 0 || q >= c.long("socket.request.max.bytes"), "queued.max.request.bytes",
			"queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
	}
	const overrides = "max.connections.per.ip.overrides"
	limits, err := csvMap(overrides, c.text(overrides))
	if c.fail(overrides, err) {
		var bad []string
		for host, limit := range limits {
			if !hostChars.MatchString(host) {
				bad = append(bad, host)
			}
			if _, ok := javaInt(limit, 32); !ok {
				c.must(false, overrides, "For input string: \"%s\"", limit)
			}
		}
		slices.Sort(bad)
		c.must(bad == nil, overrides, "max.connections.per.ip.overrides contains invalid addresses : %s", strings.Join(bad, ","))
		if c.sane("max.connections.per.ip") && c.int("max.connections.per.ip") == 0 {
			c.require(len(limits) > 0, "max.connections.per.ip",
				"max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.")
		}
	}
	if c.sane("connections.max.idle.ms", "connection.failed.authentication.delay.ms") {
		idle, delay := c.long("connections.max.idle.ms"), c.long("connection.failed.authentication.delay.ms")
		c.require(idle < 0 || delay < idle, "connection.failed.authentication.delay.ms",
			"connection.failed.authentication.delay.ms=%d should always be less than connections.max.idle.ms=%d to prevent failed authentication responses from timing out", delay, idle)
	}
	if l := c.text("samsa.http.listener"); l != "" {
		_, err := netip.ParseAddrPort(l)
		hp, ok := hostPort(l)
		c.must(err == nil || ok && hp.Port <= 65535, "samsa.http.listener", "%q is not host:port", l)
	}
}

// groups checks that the coordinator's limits and defaults fit each other.
func (c *checker) groups() {
	atMost := func(small, big string) {
		if c.sane(small, big) {
			c.must(c.long(small) <= c.long(big), big, "%s must be greater than or equal to %s", big, small)
		}
	}
	notAbove := func(small, big string) { // the same rule, told from the other side
		if c.sane(small, big) {
			c.must(c.long(small) <= c.long(big), small, "%s must be less than or equal to %s", small, big)
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		for _, what := range []string{"heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"} {
			lo, hi, is := "group."+kind+".min."+what, "group."+kind+".max."+what, "group."+kind+"."+what
			atMost(lo, hi)
			atMost(lo, is)
			notAbove(is, hi)
		}
		beat, session := "group."+kind+".heartbeat.interval.ms", "group."+kind+".session.timeout.ms"
		if c.sane(beat, session) {
			c.must(c.int(beat) < c.int(session), beat, "%s must be less than %s", beat, session)
		}
	}
	if c.sane("group.share.assignors") {
		n := len(c.list("group.share.assignors"))
		c.must(n == 1, "group.share.assignors", "group.share.assignors must contain exactly one assignor, but found %d", n)
	}
	for _, what := range []string{"delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"} {
		atMost("group.share."+what, "group.share.max."+what)
		atMost("group.share.min."+what, "group.share."+what)
	}
	atMost("group.share.max.size", "group.share.max.share.sessions")
	notAbove("group.streams.num.standby.replicas", "group.streams.max.standby.replicas")
	atMost("group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms")
	notAbove("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas")
	const tags = "group.streams.rack.aware.assignment.tags"
	if written := javaTrim(c.props[tags]); written != "" {
		raw := splitList(written)
		c.must(len(distinct(raw)) == len(raw), tags, "%s must not contain duplicate tag keys.", tags)
	}
	const protocols = "group.coordinator.rebalance.protocols"
	if c.sane(protocols) {
		c.must(slices.Contains(c.list(protocols), "classic"), protocols, "Disabling the 'classic' protocol is not supported.")
	}
}

// failedHeartbeats: Kafka only logs this one.
func (v *view) heartbeatWarning() string {
	beat := v.duration("broker.heartbeat.interval.ms", time.Millisecond)
	if session := v.duration("broker.session.timeout.ms", time.Millisecond); beat*2 > session {
		return fmt.Sprintf("broker.heartbeat.interval.ms (%v) should be at most half of broker.session.timeout.ms (%v), or the broker is fenced when one heartbeat is late", beat, session)
	}
	return ""
}
