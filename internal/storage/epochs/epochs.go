// Package epochs knows at which offset every leader epoch of a log began (KIP-101, KIP-279).
//
// Kind: pure. A Cache has one owner and no lock. It holds the content of leader-epoch-checkpoint, which is text:
//
//	0             version
//	2             number of entries
//	0 0           epoch, first offset
//	4 1733        both columns strictly increase
package epochs

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// FileName is the name of the file in a partition's directory.
const FileName = "leader-epoch-checkpoint"

// Unknown stands for an offset or epoch that is not known.
const Unknown = -1

// Entry says that Epoch began at Start.
type Entry struct {
	Epoch model.LeaderEpoch
	Start int64
}

// Cache is an ordered list of entries. The zero value is empty and ready.
type Cache struct {
	entries []Entry
}

// Assign records that epoch began at start, and reports whether anything changed.
//
// Entries it contradicts go: those with an epoch >= epoch or a start >= start (D-135). An epoch that is known already
// and began at or before start is left as it is.
func (c *Cache) Assign(epoch model.LeaderEpoch, start int64) bool {
	if epoch < 0 || start < 0 {
		return false
	}
	if n := len(c.entries); n > 0 {
		if last := c.entries[n-1]; last.Epoch == epoch && last.Start <= start {
			return false
		}
	}
	keep := len(c.entries)
	for keep > 0 && (c.entries[keep-1].Epoch >= epoch || c.entries[keep-1].Start >= start) {
		keep--
	}
	if keep < len(c.entries) && c.entries[keep] == (Entry{epoch, start}) && keep == len(c.entries)-1 {
		return false
	}
	c.entries = append(c.entries[:keep:keep], Entry{epoch, start})
	return true
}

// Latest is the newest entry.
func (c *Cache) Latest() (Entry, bool) {
	if len(c.entries) == 0 {
		return Entry{model.NoEpoch, Unknown}, false
	}
	return c.entries[len(c.entries)-1], true
}

// Earliest is the oldest entry.
func (c *Cache) Earliest() (Entry, bool) {
	if len(c.entries) == 0 {
		return Entry{model.NoEpoch, Unknown}, false
	}
	return c.entries[0], true
}

// EndOffset is the greatest known epoch <= requested and the offset at which it ends (exclusive), for a log that
// ends at logEnd (D-134):
//
//	the latest epoch            -> it, logEnd
//	above the latest, or < 0    -> -1, -1
//	below the first known       -> requested, start of the first known
//	else                        -> greatest known <= requested, start of the one after it
func (c *Cache) EndOffset(requested model.LeaderEpoch, logEnd int64) (model.LeaderEpoch, int64) {
	latest, ok := c.Latest()
	switch {
	case requested < 0 || !ok || requested > latest.Epoch:
		return model.NoEpoch, Unknown
	case requested == latest.Epoch:
		return requested, logEnd
	}
	next := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Epoch > requested })
	if next == 0 {
		return requested, c.entries[0].Start
	}
	return c.entries[next-1].Epoch, c.entries[next].Start
}

// EpochFor is the epoch that offset was (or would be) written in; false when it lies before the first entry.
func (c *Cache) EpochFor(offset int64) (model.LeaderEpoch, bool) {
	next := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Start > offset })
	if next == 0 {
		return model.NoEpoch, false
	}
	return c.entries[next-1].Epoch, true
}

// TruncateFromEnd drops entries that start at or after end; it reports whether there were any (D-70).
func (c *Cache) TruncateFromEnd(end int64) bool {
	keep := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Start >= end })
	if keep == len(c.entries) {
		return false
	}
	c.entries = c.entries[:keep:keep]
	return true
}

// TruncateFromStart drops entries that end at or before start; the one that covers start stays, moved to start (D-70).
// It reports whether anything changed.
func (c *Cache) TruncateFromStart(start int64) bool {
	covering := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].Start > start }) - 1
	if covering < 0 || c.entries[covering].Start == start && covering == 0 {
		return false
	}
	rest := append([]Entry(nil), c.entries[covering:]...)
	rest[0].Start = start
	c.entries = rest
	return true
}

// Clear forgets everything; it reports whether there was anything.
func (c *Cache) Clear() bool {
	had := len(c.entries) > 0
	c.entries = nil
	return had
}

// Len is the number of entries.
func (c *Cache) Len() int { return len(c.entries) }

// Entries is a copy of all entries, oldest first.
func (c *Cache) Entries() []Entry { return append([]Entry(nil), c.entries...) }

// Append encodes the file's content.
func (c *Cache) Append(dst []byte) []byte {
	dst = append(dst, "0\n"...)
	dst = strconv.AppendInt(dst, int64(len(c.entries)), 10)
	dst = append(dst, '\n')
	for _, e := range c.entries {
		dst = strconv.AppendInt(dst, int64(e.Epoch), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, e.Start, 10)
		dst = append(dst, '\n')
	}
	return dst
}

// Parse decodes a file. An empty file is an empty cache (D-41). Entries that do not increase are dropped the way
// Assign drops them. The error says which line is wrong and what it should have been.
func Parse(content []byte) (Cache, error) {
	var c Cache
	if len(content) == 0 {
		return c, nil
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if v := strings.TrimSpace(lines[0]); v != "0" {
		return c, fmt.Errorf("line 1 is %.40q, expected version 0", v)
	}
	if len(lines) < 2 {
		return c, fmt.Errorf("line 2 is missing, expected the number of entries")
	}
	count, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil || count < 0 {
		return c, fmt.Errorf("line 2 is %.40q, expected the number of entries", lines[1])
	}
	if got := len(lines) - 2; got != count {
		return c, fmt.Errorf("%d entries follow, expected %d as line 2 says", got, count)
	}
	for i, line := range lines[2:] {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return Cache{}, fmt.Errorf("line %d is %.40q, expected \"epoch offset\"", i+3, line)
		}
		epoch, err1 := strconv.ParseInt(fields[0], 10, 32)
		start, err2 := strconv.ParseInt(fields[1], 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return Cache{}, fmt.Errorf("line %d is %.40q, expected \"epoch offset\"", i+3, line)
		}
		c.Assign(model.LeaderEpoch(epoch), start)
	}
	return c, nil
}
