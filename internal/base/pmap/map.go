package pmap

import "iter"

// Map is an immutable sorted map. Make one with New; the zero Map has no order and only reads as empty.
type Map[K, V any] struct {
	root *node[K, V]
	size int
	cmp  func(a, b K) int
}

// New returns the empty map ordered by cmp, which must be a strict weak order.
func New[K, V any](cmp func(a, b K) int) Map[K, V] {
	return Map[K, V]{cmp: cmp}
}

// Len is the number of entries.
func (m Map[K, V]) Len() int { return m.size }

// Get returns the value of k.
func (m Map[K, V]) Get(k K) (V, bool) {
	n := m.root
	for n != nil {
		i, found := n.search(k, m.cmp)
		if found {
			return n.vals[i], true
		}
		if n.leaf() {
			break
		}
		n = n.children[i]
	}
	var none V
	return none, false
}

// Has reports whether k has a value.
func (m Map[K, V]) Has(k K) bool {
	_, ok := m.Get(k)
	return ok
}

// All walks the entries in key order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.each(yield) }
}

// Keys walks the keys in order.
func (m Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		m.root.each(func(k K, _ V) bool { return yield(k) })
	}
}

// Values walks the values in key order.
func (m Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		m.root.each(func(_ K, v V) bool { return yield(v) })
	}
}

// From walks the entries with key >= k in key order.
func (m Map[K, V]) From(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.from(k, m.cmp, yield) }
}

// With returns the map in which k has value v.
func (m Map[K, V]) With(k K, v V) Map[K, V] {
	e := m.Edit()
	e.Set(k, v)
	return e.Map()
}

// Without returns the map that lacks k.
func (m Map[K, V]) Without(k K) Map[K, V] {
	e := m.Edit()
	e.Delete(k)
	return e.Map()
}

// Edit opens a transient copy. The Map itself never changes.
func (m Map[K, V]) Edit() *Editor[K, V] {
	return &Editor[K, V]{m: m}
}

// Editor is a map under change, owned by one goroutine.
type Editor[K, V any] struct {
	m   Map[K, V]
	own *owner // nodes carrying this mark were made by this editor since the last Map
}

// owner marks nodes that may be changed in place. It has a size so that each is distinct.
type owner struct{ _ byte }

// Get, Has and Len see the changes made so far.
func (e *Editor[K, V]) Get(k K) (V, bool) { return e.m.Get(k) }
func (e *Editor[K, V]) Has(k K) bool      { return e.m.Has(k) }
func (e *Editor[K, V]) Len() int          { return e.m.size }

// Map freezes what was made so far. The Editor may go on; later changes do not touch the result.
func (e *Editor[K, V]) Map() Map[K, V] {
	e.own = nil
	return e.m
}

func (e *Editor[K, V]) owned() *owner {
	if e.own == nil {
		e.own = new(owner)
	}
	return e.own
}

// Set gives k the value v.
func (e *Editor[K, V]) Set(k K, v V) {
	own := e.owned()
	if e.m.root == nil {
		e.m.root = &node[K, V]{own: own, keys: []K{k}, vals: []V{v}}
		e.m.size = 1
		return
	}
	root := e.m.root.mutable(own)
	if root.full() {
		left := root
		mid, midVal, right := left.split(own)
		root = &node[K, V]{own: own, keys: []K{mid}, vals: []V{midVal}, children: []*node[K, V]{left, right}}
	}
	e.m.root = root
	if root.set(k, v, e.m.cmp, own) {
		e.m.size++
	}
}

// Delete removes k and reports whether it was there.
func (e *Editor[K, V]) Delete(k K) bool {
	if !e.m.Has(k) {
		return false // before anything is copied
	}
	own := e.owned()
	root := e.m.root.mutable(own)
	root.remove(k, e.m.cmp, own)
	if len(root.keys) == 0 {
		if root.leaf() {
			root = nil
		} else {
			root = root.children[0]
		}
	}
	e.m.root = root
	e.m.size--
	return true
}

// Compare is the order of the map.
func (m Map[K, V]) Compare() func(a, b K) int { return m.cmp }
