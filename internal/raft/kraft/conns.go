package kraft

import (
	"time"

	"samsa/internal/base/model"
)

// conn is what is going on with one peer: at most one request in flight, a pause after a failure (K-31).
type conn struct {
	corr    uint64
	until   time.Time // of the request, or of the pause
	waiting bool
}

// resetConns forgets every peer: whatever is still under way belongs to another epoch or leader (K-31).
func (c *Core) resetConns() { clear(c.conns) }

func (c *Core) ready(id model.NodeID) bool {
	_, busy := c.conns[id]
	return !busy
}

func (c *Core) pausing(id model.NodeID) bool {
	p, ok := c.conns[id]
	return ok && !p.waiting
}

func (c *Core) anyInFlight() bool {
	for _, p := range c.conns {
		if p.waiting {
			return true
		}
	}
	return false
}

// expireConns ends pauses, and turns requests nobody answered into pauses.
func (c *Core) expireConns() {
	for id, p := range c.conns {
		if !c.expired(p.until) {
			continue
		}
		if p.waiting {
			p.waiting, p.until = false, c.now.Add(c.cfg.RetryBackoff)
			continue
		}
		delete(c.conns, id)
	}
}

func (c *Core) send(to Peer, message any) {
	c.nextCorr++
	c.conns[to.ID] = &conn{corr: c.nextCorr, waiting: true, until: c.now.Add(c.cfg.RequestTimeout)}
	c.emit(Send{to, c.nextCorr, message})
}

// Response takes the answer to a Send, or nil when none will come. Late, doubled and foreign answers change nothing (K-31).
func (c *Core) Response(now time.Time, from model.NodeID, corr uint64, message any) {
	c.at(now)
	if c.dead {
		return
	}
	p, ok := c.conns[from]
	if !ok || !p.waiting || p.corr != corr {
		return
	}
	done := false
	if r, ok := message.(response); ok {
		done = c.handleResponse(from, r)
	}
	if c.conns[from] == p { // not reset by a transition
		if done {
			delete(c.conns, from)
		} else {
			p.waiting, p.until = false, c.now.Add(c.cfg.RetryBackoff)
		}
	}
	c.step()
}

// voterPeer is where requests to a voter go.
func (c *Core) voterPeer(id model.NodeID) (Peer, bool) {
	v, ok := c.log.voters().Find(id)
	if !ok {
		return Peer{}, false
	}
	return c.peer(id, v.Endpoints)
}

func (c *Core) peer(id model.NodeID, endpoints Endpoints) (Peer, bool) {
	e, ok := endpoints.ByListener(c.cfg.Listener)
	if !ok {
		return Peer{}, false
	}
	return Peer{ID: id, Host: e.Host, Port: e.Port}, true
}

// bootstrapPeer picks a random server that is free to ask (K-30); never this node itself.
func (c *Core) bootstrapPeer() (Peer, bool) {
	var free []Peer
	for _, p := range c.cfg.Bootstrap {
		if p.ID != c.cfg.Self.ID && c.ready(p.ID) {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return Peer{}, false
	}
	return free[c.cfg.Rand.IntN(len(free))], true
}
