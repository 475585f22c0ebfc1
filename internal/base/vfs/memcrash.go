package vfs

import "math/rand/v2"

// CrashClone is the file system as a machine might find it after losing power
// now. The clone has all that was synced, and of the rest a part that rng chooses:
//
//   - Names: unsynced changes of one name, and of the names it was renamed
//     from and to, survive in order up to a random point; unrelated names independently. A
//     rename survives whole or not at all. SyncDir decides alone: a synced file in an unsynced
//     directory entry is lost with the entry.
//   - Sizes: a file that grew has its synced size, its last one, or any in between; a cut is
//     there or not.
//   - Pages of 4096 bytes: each unsynced page is old, new, or torn at a 512-byte sector; where
//     an old page does not exist the bytes are zeros.
//
// The clone is a file system of its own, without open files or locks, with everything in it
// durable. m goes on unchanged. With the same rng seed and history the result is the same.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &crash{rng: rng, to: NewMem(), vols: map[*memVolume]*memVolume{m.root.vol: nil},
		nodes: map[*memNode]*memNode{}, fate: map[*treeChange]bool{}}
	c.vols[m.root.vol] = c.to.root.vol
	c.to.root.vol.total = m.root.vol.total
	c.to.clock.Store(m.clock.Load())
	c.to.now = m.now
	c.decide(m.root, map[*memNode]bool{})
	c.copyDir(m.root, c.to.root)
	return c.to
}

type crash struct {
	rng   *rand.Rand
	to    *Mem
	vols  map[*memVolume]*memVolume
	nodes map[*memNode]*memNode // files with two names stay one file
	fate  map[*treeChange]bool  // whether an unsynced change survived
}

type nameKey struct {
	dir  *memNode
	name string
}

// decide chooses the fate of every pending change in the tree under n. Walking
// both the current and the synced children finds each directory that could survive.
func (c *crash) decide(n *memNode, seen map[*memNode]bool) {
	if n.dir == nil || seen[n] {
		return
	}
	seen[n] = true
	// Names with a lost change: a later change of the same name is lost as well. A
	// rename joins its two names. The pending lists of two directories meet only
	// in renames between them; those were decided with the first of the two.
	lost := map[nameKey]bool{}
	for _, t := range n.dir.pending {
		if t.done {
			continue
		}
		keep, known := c.fate[t]
		if !known {
			keep = c.rng.IntN(2) == 0
			for _, x := range t.names {
				if lost[nameKey{x.dir, x.name}] || x.dir != n && c.lostElsewhere(x, t) {
					keep = false
				}
			}
			c.fate[t] = keep
		}
		if !keep {
			for _, x := range t.names {
				lost[nameKey{x.dir, x.name}] = true
			}
		}
	}
	for _, children := range []map[string]*memNode{n.dir.children, n.dir.synced} {
		for _, name := range sortedNames(children) {
			c.decide(children[name], seen)
		}
	}
	for _, t := range n.dir.pending {
		for _, x := range t.names {
			if x.node != nil {
				c.decide(x.node, seen)
			}
		}
	}
}

// lostElsewhere decides, for a rename that reaches into another directory, the
// earlier changes of that other name now.
func (c *crash) lostElsewhere(x nameChange, t *treeChange) bool {
	lost := false
	for _, earlier := range x.dir.dir.pending {
		if earlier == t {
			break
		}
		if earlier.done || !earlier.touches(x.dir, x.name) {
			continue
		}
		keep, known := c.fate[earlier]
		if !known {
			keep = !lost && c.rng.IntN(2) == 0
			c.fate[earlier] = keep
		}
		lost = lost || !keep
	}
	return lost
}

// copyDir builds in dst what survived of src.
func (c *crash) copyDir(src, dst *memNode) {
	children := map[string]*memNode{}
	for name, n := range src.dir.synced {
		children[name] = n
	}
	for _, t := range src.dir.pending {
		if t.done || !c.fate[t] {
			continue
		}
		for _, x := range t.names {
			if x.dir != src {
				continue
			}
			if x.node == nil {
				delete(children, x.name)
			} else {
				children[x.name] = x.node
			}
		}
	}
	for _, name := range sortedNames(children) {
		n := c.clone(children[name])
		n.nlink++
		dst.dir.children[name] = n
		dst.dir.synced[name] = n
	}
}

func (c *crash) clone(src *memNode) *memNode {
	if n := c.nodes[src]; n != nil {
		return n
	}
	vol := c.vols[src.vol]
	if vol == nil {
		vol = &memVolume{total: src.vol.total}
		c.vols[src.vol] = vol
	}
	var n *memNode
	if src.dir != nil {
		n = c.to.newDir(vol)
		c.nodes[src] = n
		c.copyDir(src, n)
	} else {
		n = c.to.newFile(vol)
		c.nodes[src] = n
		c.copyFile(src.file, n.file)
		vol.used.Add(int64(n.file.allocated) * pageSize)
	}
	n.mtime.Store(src.mtime.Load())
	return n
}

func (c *crash) copyFile(src, dst *memData) {
	src.mu.Lock()
	defer src.mu.Unlock()

	// A cut below the synced size reached the disk or did not. If not, nothing
	// written behind it since did either: those pages went to new blocks.
	baseSize, limit := src.syncedSize, src.size
	base := append([]*page(nil), src.syncedPages...)
	if src.hasCut {
		if c.rng.IntN(2) == 0 {
			baseSize = src.cut
			keep := int((baseSize + pageSize - 1) / pageSize)
			base = base[:min(keep, len(base))]
			if in := baseSize % pageSize; in != 0 && keep == len(base) && base[keep-1] != nil {
				p := &page{data: base[keep-1].data}
				clear(p.data[in:])
				base[keep-1] = p
			}
		} else {
			limit = src.cut
		}
	}

	size := baseSize
	if src.size > baseSize && limit >= src.size {
		switch c.rng.IntN(3) {
		case 1:
			size = src.size
		case 2:
			size += c.rng.Int64N(src.size - baseSize + 1)
		}
	}

	for i := 0; int64(i)*pageSize < size; i++ {
		var p *page
		if i < len(base) {
			p = base[i]
		}
		if _, dirty := src.dirty[i]; dirty && int64(i)*pageSize < limit && i < len(src.pages) && src.pages[i] != nil {
			upTo := pageSize // how much of the new page could have been written
			if limit < int64(i+1)*pageSize {
				upTo = int(limit - int64(i)*pageSize)
			}
			p = c.mix(p, src.pages[i], upTo)
		}
		dst.pages = append(dst.pages, p)
	}
	dst.size = size
	if in := size % pageSize; in != 0 {
		if last := dst.pages[len(dst.pages)-1]; last != nil {
			p := &page{data: last.data}
			clear(p.data[in:])
			dst.pages[len(dst.pages)-1] = p
		}
	}
	for _, p := range dst.pages {
		if p != nil {
			dst.allocated++
			if !p.shared {
				p.shared = true
			}
		}
	}
	dst.syncedSize = size
	dst.syncedPages = append([]*page(nil), dst.pages...)
}

// mix is the old page, the new one, or one torn between two sectors, new bytes first or last.
func (c *crash) mix(old, fresh *page, upTo int) *page {
	mixed := &page{}
	if old != nil {
		mixed.data = old.data
	}
	from, to := 0, upTo
	switch c.rng.IntN(4) {
	case 0:
		return old
	case 1:
	case 2:
		to = min(upTo, sectorSize*c.rng.IntN(pageSize/sectorSize))
	case 3:
		from = min(upTo, sectorSize*c.rng.IntN(pageSize/sectorSize))
	}
	copy(mixed.data[from:to], fresh.data[from:to])
	return mixed
}
