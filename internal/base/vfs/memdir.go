package vfs

import "slices"

// memDir is the content of a directory: as it is, and as it would be after a crash
// right now if nothing but SyncDir had reached the disk. The difference between
// the two is pending, oldest first.
type memDir struct {
	children map[string]*memNode
	synced   map[string]*memNode
	pending  []*treeChange
}

// nameChange says that a name in a directory becomes node, or free when node is nil.
type nameChange struct {
	dir  *memNode
	name string
	node *memNode
}

// treeChange is one atomic change of the tree: a creation or a removal of one name, or a
// rename of two, perhaps in two directories. It is in pending of each.
type treeChange struct {
	names []nameChange
	done  bool // it is in synced
}

// maxPending is how many changes a directory holds back before the oldest go to
// the disk by themselves, as those of a real file system do after seconds. It
// bounds memory in long tests.
const maxPending = 4096

// change makes a change in the current tree. The caller holds mu.
func (m *Mem) change(names ...nameChange) {
	t := &treeChange{names: names}
	var was []*memNode
	for i, c := range names {
		children := c.dir.dir.children
		if old := children[c.name]; old != nil {
			old.nlink--
			was = append(was, old)
		}
		if c.node == nil {
			delete(children, c.name)
		} else {
			children[c.name] = c.node
			c.node.nlink++
		}
		c.dir.touch()
		if i == 0 || names[0].dir != c.dir {
			c.dir.dir.pending = append(c.dir.dir.pending, t)
		}
	}
	for _, n := range was {
		n.reclaim() // a renamed file has its new name by now
	}
	for _, c := range names {
		if len(c.dir.dir.pending) > maxPending {
			c.dir.persist(maxPending / 2)
		}
	}
}

// persist makes the first n pending changes of the directory durable, and with
// them those of other directories that they build on.
func (n *memNode) persist(count int) {
	for _, t := range n.dir.pending[:count] {
		t.persist(n)
	}
	n.dir.pending = slices.DeleteFunc(n.dir.pending, func(t *treeChange) bool { return t.done })
}

// persist makes one change durable after the earlier ones of its names. Those in
// inOrder have been already.
func (t *treeChange) persist(inOrder *memNode) {
	if t.done {
		return
	}
	t.done = true
	for _, c := range t.names {
		if c.dir == inOrder {
			continue
		}
		for _, earlier := range c.dir.dir.pending {
			if earlier == t {
				break
			}
			if !earlier.done && earlier.touches(c.dir, c.name) {
				earlier.persist(nil)
			}
		}
	}
	for _, c := range t.names {
		if c.node == nil {
			delete(c.dir.dir.synced, c.name)
		} else {
			c.dir.dir.synced[c.name] = c.node
		}
	}
}

func (t *treeChange) touches(dir *memNode, name string) bool {
	for _, c := range t.names {
		if c.dir == dir && c.name == name {
			return true
		}
	}
	return false
}

// reclaim gives the space of a file back once it has neither name nor user. What it
// held stays in memory while an unsynced directory change could bring it back. The caller holds mu.
func (n *memNode) reclaim() {
	if n.file == nil || n.nlink > 0 || n.open > 0 {
		return
	}
	n.file.mu.Lock()
	defer n.file.mu.Unlock()
	n.vol.give(n.file.allocated)
	n.file.allocated = 0
	n.file.orphan = true
}
