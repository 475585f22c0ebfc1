package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"

	"samsa/internal/base/vfs"
	"samsa/internal/wire/record"
)

// Reading the metadata log at start.
//
// partlog cuts a torn tail at the last whole batch, as it must after a crash (K-73). For a partition that is enough: other replicas have
// the rest. The metadata log of a single voter has no other replica, so before anything is cut this file decides whether the damage can be
// a torn tail at all. It cannot when
//
//   - it lies in a segment that is not the last one, or segments do not join: they were synced when they were rolled;
//   - a whole batch of a later leader epoch follows: an epoch begins only after everything before it was read back;
//   - a whole batch follows that was written more than rotAfter later: every append is synced before it is acknowledged, so an
//     unsynced tail spans the time of one fsync, not minutes. An idle controller writes every half second, so old rot shows;
//   - the log was closed or rolled at a later offset, which the producer snapshot named after that offset says: everything below it was
//     synced.
//
// Then the node does not start, and says what is damaged and what can be done.
const rotAfter = 60_000 // ms

// logSegment is one .log file.
type logSegment struct {
	base int64
	path string
	size int64
}

func listSegments(fsys vfs.FS, dir string) ([]logSegment, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var segs []logSegment
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok || e.IsDir() || len(digits) != 20 {
			continue
		}
		base, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		segs = append(segs, logSegment{base, join(dir, e.Name()), info.Size()})
	}
	sort.Slice(segs, func(i, j int) bool { return segs[i].base < segs[j].base })
	return segs, nil
}

// closedAt is the greatest offset at which the log was closed cleanly or rolled: that of its newest producer snapshot, -1 if there is none.
func closedAt(fsys vfs.FS, dir string) (int64, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	newest := int64(-1)
	for _, e := range entries {
		if digits, ok := strings.CutSuffix(e.Name(), ".snapshot"); ok && len(digits) == 20 {
			if offset, err := strconv.ParseInt(digits, 10, 64); err == nil {
				newest = max(newest, offset)
			}
		}
	}
	return newest, err
}

// DamagedLogError is returned by Open when the metadata log is damaged where no crash can have damaged it.
type DamagedLogError struct {
	Path     string
	Position int64
	Offset   int64 // of the first record that cannot be read
	Why      string
}

func (e *DamagedLogError) Error() string {
	return fmt.Sprintf("the metadata log is damaged: %s, byte %d, offset %d: %s. Nothing was changed. Restore the file from a backup; or, if a majority of the "+
		"other voters runs, move the whole directory away and let this node fetch the log again; or, to give up everything from offset %d on, "+
		"cut the file to %d bytes and remove the segments after it", e.Path, e.Position, e.Offset, e.Why, e.Offset, e.Position)
}

// verifyLog reads all segments and returns an error when there is damage that is no torn tail. Damage that lies below a snapshot costs nothing: then keep is
// the index of the first segment worth keeping, and why says what is wrong with those before it. (Deleting old segments is several renames,
// of which a power cut may leave any.) closed is where the log was closed or rolled last, -1 if that is not known.
func verifyLog(fsys vfs.FS, segs []logSegment, snapshot, closed int64) (keep int, why error, err error) {
	at := reading{epoch: -1, timestamp: -1, closed: closed}
	for i, s := range segs {
		var damage error
		if i > keep && s.base != at.next {
			damage = &DamagedLogError{s.path, 0, at.next, fmt.Sprintf("the segment begins at offset %d, the one before it ends at %d", s.base, at.next)}
			if s.base <= snapshot {
				keep, why, damage = i, damage, nil
			}
		}
		if damage == nil {
			at.next = s.base
			damage = at.segment(fsys, s, i == len(segs)-1)
		}
		var rot *DamagedLogError
		if errors.As(damage, &rot) && i+1 < len(segs) && segs[i+1].base <= snapshot {
			keep, why, damage = i+1, damage, nil
		}
		if damage != nil {
			return 0, nil, damage
		}
	}
	return keep, why, nil
}

// reading is how far the log is sound: the next offset, and epoch and newest time of the batches before it.
type reading struct {
	next      int64
	epoch     int32
	timestamp int64
	closed    int64 // where the log was closed or rolled last
}

// searchBytes is how far behind damage whole batches are looked for: hours of an idle controller.
const searchBytes = 64 << 20

func (at *reading) segment(fsys vfs.FS, s logSegment, last bool) error {
	f, err := fsys.OpenFile(s.path, os.O_RDONLY, 0)
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()
	w := window{f: f, size: s.size}
	for w.pos < s.size {
		data, err := w.batch()
		if err != nil {
			return unreadable(err)
		}
		b, why := wholeBatch(data, at.next)
		if why == "" && b.LeaderEpoch() < at.epoch {
			why = fmt.Sprintf("a batch of leader epoch %d follows one of epoch %d", b.LeaderEpoch(), at.epoch)
		}
		if why == "" {
			at.next, at.epoch, at.timestamp = b.LastOffset()+1, b.LeaderEpoch(), max(at.timestamp, b.MaxTimestamp())
			w.pos += int64(len(b))
			continue
		}
		damage := &DamagedLogError{s.path, w.pos, at.next, why}
		if !last {
			return damage
		}
		if at.next < at.closed {
			damage.Why += fmt.Sprintf("; the log was closed at offset %d, so it was synced once", at.closed)
			return damage
		}
		rest := make([]byte, min(s.size-w.pos-1, searchBytes))
		if _, err := f.ReadAt(rest, w.pos+1); err != nil {
			return unreadable(err)
		}
		if after := at.laterBatch(rest); after != nil {
			damage.Why += fmt.Sprintf("; whole batches follow it, one at offset %d of epoch %d, so it was synced once", after.BaseOffset(), after.LeaderEpoch())
			return damage
		}
		return nil
	}
	return nil
}

func unreadable(err error) error {
	return fmt.Errorf("the metadata log cannot be read: %w. Check the disk; nothing was changed", err)
}

// window reads a file forward in pieces.
type window struct {
	f    vfs.File
	size int64
	pos  int64
	buf  []byte
	from int64 // position of buf in the file
}

const windowBytes = 1 << 20

// batch returns the bytes at pos: the batch there if it is whole, or what is left of the file.
func (w *window) batch() ([]byte, error) {
	if err := w.fill(record.HeaderUpToMagic); err != nil {
		return nil, err
	}
	head := w.buf[w.pos-w.from:]
	if len(head) < record.HeaderUpToMagic || record.CheckHeader(head) != nil {
		return head, nil
	}
	n := int64(record.Batch(head).SizeInBytes())
	if n > w.size-w.pos {
		return head, nil
	}
	if err := w.fill(n); err != nil {
		return nil, err
	}
	return w.buf[w.pos-w.from:], nil
}

// fill makes n bytes from pos on available, or all there are.
func (w *window) fill(n int64) error {
	n = min(n, w.size-w.pos)
	if w.pos >= w.from && w.pos+n <= w.from+int64(len(w.buf)) {
		return nil
	}
	length := min(max(n, windowBytes), w.size-w.pos)
	if int64(cap(w.buf)) < length {
		w.buf = make([]byte, length)
	}
	w.buf, w.from = w.buf[:length], w.pos
	_, err := w.f.ReadAt(w.buf, w.pos)
	return err
}

// wholeBatch reads one batch at the start of b; why says what is wrong with it.
func wholeBatch(b []byte, offset int64) (batch record.Batch, why string) {
	batch, _, err := record.Next(b)
	switch {
	case err != nil:
		return nil, err.Error()
	case batch == nil:
		return nil, "the last batch is cut"
	case batch.Magic() != 2:
		return nil, fmt.Sprintf("a batch has format v%d", batch.Magic())
	case !batch.ValidCRC():
		return nil, "a batch has a wrong checksum"
	case batch.BaseOffset() < offset || batch.LastOffset() < batch.BaseOffset():
		return nil, fmt.Sprintf("a batch begins at offset %d, not %d", batch.BaseOffset(), offset)
	}
	return batch, ""
}

// laterBatch looks for a whole batch behind damage that an unsynced tail cannot hold. When nothing is known from before the damage, the first
// whole batch behind it is what later ones are compared with. Every batch has magic 2 at byte 16, and a checksum is only
// computed when the offset is plausible, so the search is cheap.
func (at reading) laterBatch(data []byte) record.Batch {
	for i := 0; i+record.HeaderSize <= len(data); {
		b := record.Batch(data[i:])
		if b.Magic() != 2 || b.BaseOffset() < at.next || b.BaseOffset() > at.next+int64(len(data)) {
			i++
			continue
		}
		if n := b.SizeInBytes(); n < record.HeaderSize || n > len(b) || !b.ValidCRC() {
			i++
			continue
		}
		n := b.SizeInBytes()
		switch {
		case at.epoch < 0:
			at.epoch, at.timestamp = b.LeaderEpoch(), b.MaxTimestamp()
		case b.LeaderEpoch() > at.epoch || b.MaxTimestamp() > at.timestamp+rotAfter:
			return b[:n:n]
		}
		i += n
	}
	return nil
}

// exists is vfs.Exists for a plain file.
func exists(fsys vfs.FS, path string) (bool, error) {
	_, err := fsys.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
