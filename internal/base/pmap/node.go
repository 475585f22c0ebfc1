package pmap

import "slices"

// maxKeys is odd so that a split leaves two halves of minKeys. 31 keys of 16 bytes are eight
// cache lines to copy per level, and three levels hold 30,000 entries.
const (
	maxKeys = 31
	minKeys = maxKeys / 2
)

// node holds keys in order; an inner node has one child more than keys, child i holding what
// lies between key i-1 and key i. Every node but the root has at least minKeys keys.
type node[K, V any] struct {
	own      *owner
	keys     []K
	vals     []V
	children []*node[K, V] // nil in a leaf
}

func (n *node[K, V]) leaf() bool { return n.children == nil }
func (n *node[K, V]) full() bool { return len(n.keys) >= maxKeys }

// search returns the place of k: its index, or the child to go down to.
func (n *node[K, V]) search(k K, cmp func(a, b K) int) (int, bool) {
	lo, hi := 0, len(n.keys)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := cmp(n.keys[mid], k); {
		case c < 0:
			lo = mid + 1
		case c > 0:
			hi = mid
		default:
			return mid, true
		}
	}
	return lo, false
}

// mutable returns n if own may change it, else a copy that own may change.
func (n *node[K, V]) mutable(own *owner) *node[K, V] {
	if n.own == own {
		return n
	}
	return &node[K, V]{own: own, keys: slices.Clone(n.keys), vals: slices.Clone(n.vals), children: slices.Clone(n.children)}
}

// child returns child i, made changeable.
func (n *node[K, V]) child(i int, own *owner) *node[K, V] {
	c := n.children[i].mutable(own)
	n.children[i] = c
	return c
}

// split cuts a full node in two around its middle key; n keeps the left half.
func (n *node[K, V]) split(own *owner) (K, V, *node[K, V]) {
	const mid = maxKeys / 2
	k, v := n.keys[mid], n.vals[mid]
	right := &node[K, V]{own: own, keys: slices.Clone(n.keys[mid+1:]), vals: slices.Clone(n.vals[mid+1:])}
	n.keys, n.vals = cut(n.keys, mid), cut(n.vals, mid)
	if !n.leaf() {
		right.children = slices.Clone(n.children[mid+1:])
		n.children = cut(n.children, mid+1)
	}
	return k, v, right
}

// cut shortens s to n elements and lets go of what the rest pointed at.
func cut[T any](s []T, n int) []T {
	clear(s[n:])
	return s[:n]
}

// set stores k in the subtree of n, which is changeable and not full. It reports whether k is new.
func (n *node[K, V]) set(k K, v V, cmp func(a, b K) int, own *owner) bool {
	for {
		i, found := n.search(k, cmp)
		if found {
			n.keys[i], n.vals[i] = k, v
			return false
		}
		if n.leaf() {
			n.keys = slices.Insert(n.keys, i, k)
			n.vals = slices.Insert(n.vals, i, v)
			return true
		}
		c := n.child(i, own)
		if c.full() {
			mid, midVal, right := c.split(own)
			n.keys = slices.Insert(n.keys, i, mid)
			n.vals = slices.Insert(n.vals, i, midVal)
			n.children = slices.Insert(n.children, i+1, right)
			continue // the middle key may be k, or k may belong right of it
		}
		n = c
	}
}

// remove deletes k, which is present, from the subtree of n, which is changeable and, unless it
// is the root, has more than minKeys keys.
func (n *node[K, V]) remove(k K, cmp func(a, b K) int, own *owner) {
	i, found := n.search(k, cmp)
	switch {
	case n.leaf():
		n.keys = slices.Delete(n.keys, i, i+1)
		n.vals = slices.Delete(n.vals, i, i+1)
	case found && len(n.children[i].keys) > minKeys:
		n.keys[i], n.vals[i] = n.child(i, own).removeMax(own)
	case found && len(n.children[i+1].keys) > minKeys:
		n.keys[i], n.vals[i] = n.child(i+1, own).removeMin(own)
	case found:
		n.merge(i, own)
		n.children[i].remove(k, cmp, own)
	default:
		n.grow(i, own).remove(k, cmp, own)
	}
}

func (n *node[K, V]) removeMax(own *owner) (K, V) {
	last := len(n.keys) - 1
	if n.leaf() {
		k, v := n.keys[last], n.vals[last]
		n.keys, n.vals = cut(n.keys, last), cut(n.vals, last)
		return k, v
	}
	return n.grow(len(n.children)-1, own).removeMax(own)
}

func (n *node[K, V]) removeMin(own *owner) (K, V) {
	if n.leaf() {
		k, v := n.keys[0], n.vals[0]
		n.keys, n.vals = slices.Delete(n.keys, 0, 1), slices.Delete(n.vals, 0, 1)
		return k, v
	}
	return n.grow(0, own).removeMin(own)
}

// grow returns child i, changeable and with more than minKeys keys, so that one can be removed:
// it borrows a key from a neighbour or merges with one.
func (n *node[K, V]) grow(i int, own *owner) *node[K, V] {
	switch {
	case len(n.children[i].keys) > minKeys:
		return n.child(i, own)
	case i > 0 && len(n.children[i-1].keys) > minKeys:
		c, left := n.child(i, own), n.child(i-1, own)
		last := len(left.keys) - 1
		c.keys = slices.Insert(c.keys, 0, n.keys[i-1])
		c.vals = slices.Insert(c.vals, 0, n.vals[i-1])
		n.keys[i-1], n.vals[i-1] = left.keys[last], left.vals[last]
		left.keys, left.vals = cut(left.keys, last), cut(left.vals, last)
		if !c.leaf() {
			c.children = slices.Insert(c.children, 0, left.children[last+1])
			left.children = cut(left.children, last+1)
		}
		return c
	case i+1 < len(n.children) && len(n.children[i+1].keys) > minKeys:
		c, right := n.child(i, own), n.child(i+1, own)
		c.keys = append(c.keys, n.keys[i])
		c.vals = append(c.vals, n.vals[i])
		n.keys[i], n.vals[i] = right.keys[0], right.vals[0]
		right.keys, right.vals = slices.Delete(right.keys, 0, 1), slices.Delete(right.vals, 0, 1)
		if !c.leaf() {
			c.children = append(c.children, right.children[0])
			right.children = slices.Delete(right.children, 0, 1)
		}
		return c
	case i > 0:
		return n.merge(i-1, own)
	default:
		return n.merge(i, own)
	}
}

// merge joins child i, key i and child i+1 into child i, which it returns.
func (n *node[K, V]) merge(i int, own *owner) *node[K, V] {
	left, right := n.child(i, own), n.children[i+1]
	left.keys = append(append(left.keys, n.keys[i]), right.keys...)
	left.vals = append(append(left.vals, n.vals[i]), right.vals...)
	if !left.leaf() {
		left.children = append(left.children, right.children...)
	}
	n.keys = slices.Delete(n.keys, i, i+1)
	n.vals = slices.Delete(n.vals, i, i+1)
	n.children = slices.Delete(n.children, i+1, i+2)
	return left
}

func (n *node[K, V]) each(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i, k := range n.keys {
		if !n.leaf() && !n.children[i].each(yield) {
			return false
		}
		if !yield(k, n.vals[i]) {
			return false
		}
	}
	return n.leaf() || n.children[len(n.keys)].each(yield)
}

func (n *node[K, V]) from(k K, cmp func(a, b K) int, yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	i, found := n.search(k, cmp)
	if !found && !n.leaf() && !n.children[i].from(k, cmp, yield) {
		return false
	}
	for ; i < len(n.keys); i++ {
		if !yield(n.keys[i], n.vals[i]) {
			return false
		}
		if !n.leaf() && !n.children[i+1].each(yield) {
			return false
		}
	}
	return true
}
