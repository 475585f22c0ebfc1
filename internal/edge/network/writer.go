package network

// complete hands over the answer of a request (no parts: there is none) and sends what has
// become sendable.
func (c *Conn) complete(r *Request, parts []Part) {
	if f := c.server.options.Answered; f != nil {
		f(r, c.server.options.Now().Sub(r.ReceivedAt))
	}
	c.mu.Lock()
	if r.done {
		c.mu.Unlock()
		dropParts(parts)
		return
	}
	r.done = true
	if !c.server.overlaps(r.Key) {
		c.barriers--
	}
	if c.closed {
		c.mu.Unlock()
		dropParts(parts)
		return
	}
	r.parts = parts
	for i := range parts {
		c.unsent += parts[i].size()
	}
	c.changed.Broadcast()
	own := c.serving
	if c.corked && own || c.writing || !c.queue[0].done {
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.flushIfReady()
}

// flushIfReady sends the complete answers at the head of the queue, unless somebody is at it.
func (c *Conn) flushIfReady() {
	c.mu.Lock()
	if c.writing || c.closed || len(c.queue) == 0 || !c.queue[0].done {
		c.mu.Unlock()
		return
	}
	c.writing = true
	own := c.serving
	total := c.unsent
	c.mu.Unlock()

	// An answer completed by another connection's goroutine must not hold that one up.
	const longWrite = 256 << 10
	if !own && total > longWrite {
		c.server.goroutines.Go(func() { c.flush(nil, true) })
		return
	}
	c.flush(nil, false)
}

// flush writes until nothing is complete. Called with writing set, which it clears; if the
// socket is full it goes on in a goroutine of its own.
func (c *Conn) flush(parts []Part, block bool) {
	for {
		var err error
		before := partsSize(parts)
		if len(parts) > 0 {
			parts, err = c.transport.write(parts, block)
		}
		sent := before - partsSize(parts)
		if sent > 0 {
			c.server.stats.BytesOut.Add(sent)
		}
		if err == errWouldBlock {
			c.settle(sent)
			rest := parts
			c.server.goroutines.Go(func() { c.flush(rest, true) })
			return
		}
		if err != nil {
			dropParts(parts)
			c.Close(err) // if it is closed already, the queue was left to this writer
			c.dropQueue()
			return
		}
		c.mu.Lock()
		c.unsent -= sent
		if c.closed {
			c.mu.Unlock()
			c.dropQueue()
			return
		}
		parts = c.collect()
		if len(parts) == 0 {
			c.writing = false
			c.changed.Broadcast()
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}

// collect takes the parts of the complete requests at the head of the queue. Called with mu held.
func (c *Conn) collect() []Part {
	var parts []Part
	n := 0
	for n < len(c.queue) && c.queue[n].done {
		if n == 0 {
			parts = c.queue[0].parts
		} else {
			parts = append(parts, c.queue[n].parts...)
		}
		c.queue[n].parts = nil
		n++
		if len(parts) == 0 { // acks=0: nothing to send; take the next
			continue
		}
	}
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	return parts
}

// takeAll empties the queue of a closed connection. Called with mu held.
func (c *Conn) takeAll() []*Request {
	all := c.queue
	c.queue = nil
	return all
}

func (c *Conn) settle(sent int64) {
	c.mu.Lock()
	c.unsent -= sent
	c.mu.Unlock()
}

// dropQueue ends writing on a closed connection: what was to be sent is released.
func (c *Conn) dropQueue() {
	c.mu.Lock()
	c.writing = false
	dropped := c.takeAll()
	c.mu.Unlock()
	for _, r := range dropped {
		r.drop()
	}
}

func (r *Request) drop() {
	dropParts(r.parts)
	r.parts = nil
}

func dropParts(parts []Part) {
	for i := range parts {
		parts[i].release()
	}
}

func (p *Part) size() int64 {
	if p.File != nil {
		return p.Length
	}
	return int64(len(p.Bytes))
}

func partsSize(parts []Part) (n int64) {
	for i := range parts {
		n += parts[i].size()
	}
	return n
}
