package partlog

import (
	"os"
	"sync"

	"samsa/internal/base/vfs"
)

// DefaultOpenFiles is the limit of a Files nobody configured.
const DefaultOpenFiles = 1024

// Files keeps at most max segment and index files open over all logs; the ones not used lately are closed (second-chance
// order) and opened again when needed. One Files serves any number of logs, in any number of directories.
//
// Closing a file that holds unsynced data is allowed: the kernel reports a failed write-back to whoever syncs
// the file next, also through a descriptor opened later.
type Files struct {
	mu   sync.Mutex
	max  int
	ring []*handle
	hand int
}

// NewFiles makes a cache of max descriptors; it is exceeded only while more are in use at one moment.
func NewFiles(max int) *Files {
	if max < 8 {
		max = 8
	}
	return &Files{max: max}
}

// Open is the number of descriptors open now.
func (c *Files) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring)
}

// handle is one file that may be open or not. Lock order: handle.mu, then Files.mu; the sweep under Files.mu only tries
// other handles' locks.
type handle struct {
	mu   sync.Mutex
	f    vfs.File // guarded by mu
	used bool     // guarded by mu: since the hand came by
	slot int      // guarded by Files.mu
}

// hold returns the file if it is open, kept open until its Release; nil otherwise.
func (h *handle) hold() vfs.File {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.f == nil || !h.f.Hold() {
		return nil
	}
	h.used = true
	return h.f
}

// open is hold, opening the file at path if necessary.
func (c *Files) open(h *handle, fs vfs.FS, path string, flag int) (vfs.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.f != nil && h.f.Hold() {
		h.used = true
		return h.f, nil
	}
	if h.f != nil { // closed behind our back: its directory went offline, which opening it again tells
		_ = h.f.Close()
		h.f = nil
		c.mu.Lock()
		c.removeLocked(h)
		c.mu.Unlock()
	}
	f, err := fs.OpenFile(path, flag, 0o644)
	if err != nil {
		return nil, err
	}
	if !f.Hold() {
		_ = f.Close()
		return nil, os.ErrClosed
	}
	h.f, h.used = f, true
	c.add(h)
	return f, nil
}

func (c *Files) add(h *handle) {
	var victims []vfs.File
	c.mu.Lock()
	h.slot = len(c.ring)
	c.ring = append(c.ring, h)
	for tries := 2 * len(c.ring); len(c.ring) > c.max && tries > 0; tries-- {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		v := c.ring[c.hand]
		if v == h || !v.mu.TryLock() {
			c.hand++
			continue
		}
		if v.used {
			v.used = false
			c.hand++
		} else {
			victims = append(victims, v.f)
			v.f = nil
			c.removeLocked(v)
		}
		v.mu.Unlock()
	}
	c.mu.Unlock()
	for _, f := range victims {
		_ = f.Close()
	}
}

func (c *Files) removeLocked(h *handle) {
	last := len(c.ring) - 1
	c.ring[h.slot] = c.ring[last]
	c.ring[h.slot].slot = h.slot
	c.ring[last] = nil
	c.ring = c.ring[:last]
}

// close closes the file if it is open. Holders go on.
func (c *Files) close(h *handle) {
	h.mu.Lock()
	f := h.f
	h.f = nil
	if f != nil {
		c.mu.Lock()
		c.removeLocked(h)
		c.mu.Unlock()
	}
	h.mu.Unlock()
	if f != nil {
		_ = f.Close()
	}
}
