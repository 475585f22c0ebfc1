package node

import (
	"errors"
	"fmt"
	"io"
	"os"

	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
	"samsa/internal/wire/record"
)

// maxBatchBytes bounds one batch of the metadata log and of its snapshots (K-57).
const maxBatchBytes = 8 << 20

// maxReadBatch is what a reader accepts: Kafka may write a batch that is a little larger than the limit.
const maxReadBatch = 64 << 20

// SnapshotReader reads one .checkpoint file, checking every batch. It keeps the file open, so that the snapshot may be deleted
// meanwhile. It is used by one goroutine at a time.
type SnapshotReader struct {
	f         vfs.File
	path      string
	id        kraft.SnapshotID
	size, pos int64
	next      int64 // offset the next batch must begin at
	timestamp int64
	version   int16
	voters    kraft.VoterSet
	footer    bool
}

// OpenSnapshot opens a checkpoint file of any path and reads its header batch; id names what the file should hold.
func OpenSnapshot(fs vfs.FS, path string, id kraft.SnapshotID) (*SnapshotReader, error) {
	f, err := fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	r := &SnapshotReader{f: f, path: path, id: id}
	if r.size, err = f.Size(); err == nil {
		err = r.readHeader()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *SnapshotReader) ID() kraft.SnapshotID          { return r.id }
func (r *SnapshotReader) LastContainedTimestamp() int64 { return r.timestamp }
func (r *SnapshotReader) SizeInBytes() int64            { return r.size }

// KRaftVersion and Voters are the control records of the header batch: 0 and nil when absent.
func (r *SnapshotReader) KRaftVersion() int16    { return r.version }
func (r *SnapshotReader) Voters() kraft.VoterSet { return r.voters }
func (r *SnapshotReader) Close() error           { return r.f.Close() }

// damaged says what is wrong and what to do about it.
func (r *SnapshotReader) damaged(format string, args ...any) error {
	return &SnapshotError{Path: r.path, ID: r.id, Err: fmt.Errorf(format, args...)}
}

// SnapshotError is returned when a checkpoint file is not what its name promises.
type SnapshotError struct {
	Path string
	ID   kraft.SnapshotID
	Err  error
}

func (e *SnapshotError) Error() string {
	if e.ID.IsBootstrap() {
		return fmt.Sprintf("checkpoint %s is damaged: %v. It holds what format wrote: restore it from a backup, or format again", e.Path, e.Err)
	}
	return fmt.Sprintf("snapshot %s is damaged: %v. Restore it from a backup or copy the same file from another node; "+
		"if the log before offset %d or an older snapshot is still there, moving the file away is enough", e.Path, e.Err, e.ID.Offset)
}
func (e *SnapshotError) Unwrap() error { return e.Err }

// nextBatch reads the next whole batch and checks everything that can be without looking into its records.
func (r *SnapshotReader) nextBatch() (record.Batch, error) {
	if r.pos == r.size {
		return nil, r.damaged("it ends at byte %d without a footer", r.size)
	}
	var head [record.HeaderUpToMagic]byte
	if r.size-r.pos < int64(len(head)) {
		return nil, r.damaged("it ends in the middle of a batch at byte %d", r.pos)
	}
	if _, err := r.f.ReadAt(head[:], r.pos); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.path, err)
	}
	if err := record.CheckHeader(head[:]); err != nil {
		return nil, r.damaged("batch at byte %d: %w", r.pos, err)
	}
	n := int64(record.Batch(head[:]).SizeInBytes())
	if n > r.size-r.pos || n > maxReadBatch || head[16] != 2 {
		return nil, r.damaged("batch at byte %d says it is %d bytes long in format v%d; %d bytes are left", r.pos, n, head[16], r.size-r.pos)
	}
	b := make(record.Batch, n)
	if _, err := r.f.ReadAt(b, r.pos); err != nil {
		return nil, fmt.Errorf("read %s: %w", r.path, err)
	}
	if !b.ValidCRC() {
		return nil, r.damaged("batch at byte %d has a wrong checksum", r.pos)
	}
	if b.BaseOffset() != r.next || b.LastOffset() < b.BaseOffset() {
		return nil, r.damaged("batch at byte %d begins at offset %d, not %d", r.pos, b.BaseOffset(), r.next)
	}
	r.pos += n
	r.next = b.LastOffset() + 1
	return b, nil
}

func (r *SnapshotReader) readHeader() error {
	b, err := r.nextBatch()
	if err != nil {
		return err
	}
	if !b.IsControl() {
		return r.damaged("it does not begin with a control batch")
	}
	header := false
	for rec, err := range record.Records(b) {
		if err != nil {
			return r.damaged("header batch: %w", err)
		}
		t, err := protocol.ReadControlKey(rec.Key)
		if err != nil {
			return r.damaged("header batch: %w", err)
		}
		if t == protocol.ControlSnapshotHeader {
			var h protocol.SnapshotHeaderRecord
			if _, err := h.Read(rec.Value, 0); err != nil {
				return r.damaged("header: %w", err)
			}
			header, r.timestamp = true, h.LastContainedLogTimestamp
			continue
		}
		c, err := kraft.ParseControl(rec.Offset, rec.Key, rec.Value)
		if err != nil {
			return r.damaged("%w", err)
		}
		if c != nil && c.KRaftVersion != nil {
			r.version = *c.KRaftVersion
		}
		if c != nil && c.Voters != nil {
			r.voters = c.Voters
		}
	}
	if !header {
		return r.damaged("its first batch holds no header")
	}
	return nil
}

// Next returns the next data batch; io.EOF after the footer, an error that names the path when it is missing or damaged. Offsets count from 0
// within the file.
func (r *SnapshotReader) Next() (Batch, error) {
	for !r.footer {
		b, err := r.nextBatch()
		if err != nil {
			return Batch{}, err
		}
		if !b.IsControl() {
			d, err := decodeBatch(b)
			if err != nil {
				return Batch{}, r.damaged("%w", err)
			}
			return d, nil
		}
		for rec, err := range record.Records(b) {
			if err != nil {
				return Batch{}, r.damaged("control batch: %w", err)
			}
			if t, err := protocol.ReadControlKey(rec.Key); err == nil && t == protocol.ControlSnapshotFooter {
				r.footer = true
			}
		}
	}
	if r.pos != r.size {
		return Batch{}, r.damaged("%d bytes follow the footer", r.size-r.pos)
	}
	return Batch{}, io.EOF
}

// decodeBatch turns a whole data batch into a Batch whose records own their memory.
func decodeBatch(b record.Batch) (Batch, error) {
	d := Batch{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Epoch: b.LeaderEpoch(), AppendTimestamp: b.MaxTimestamp(),
		SizeInBytes: b.SizeInBytes(), Control: b.IsControl()}
	if d.Control {
		return d, nil
	}
	if c := b.Count(); c > 0 && int(c) <= len(b) {
		d.Records = make([]Record, 0, c)
	}
	var values []byte
	if b.Compression() == record.None {
		values = make([]byte, 0, len(b)) // one allocation for all values; never grown, so the slices stay
	}
	for r, err := range record.Records(b) {
		if err != nil {
			return d, fmt.Errorf("batch at offset %d: %w", d.BaseOffset, err)
		}
		at := len(values)
		if values != nil && at+len(r.Value) <= cap(values) {
			values = append(values, r.Value...)
			d.Records = append(d.Records, values[at:len(values):len(values)])
			continue
		}
		d.Records = append(d.Records, append([]byte{}, r.Value...))
	}
	return d, nil
}

// SnapshotWriter writes one .checkpoint file: header, records in batches, footer (K-65). It is used by one goroutine.
type SnapshotWriter struct {
	fs         vfs.FS
	f          vfs.File
	dir        string
	part, name string
	id         kraft.SnapshotID
	pos        int64
	next       int64
	timestamp  int64
	builder    *record.Builder
	scratch    []byte
	done       bool
	err        error
	frozen     func(kraft.SnapshotInfo) // of the node it belongs to
	closed     func()
	batchLimit int
}

// CheckpointOptions say what the header batch holds.
type CheckpointOptions struct {
	LastContainedTimestamp int64
	KRaftVersion           int16          // 0: neither of the two records is written (K-66)
	Voters                 kraft.VoterSet // nil: no voters record
}

const recordsPerBatch = 1024

// NewCheckpoint starts a checkpoint file outside a running node (storage format): written to a .part file in dir, visible under its name after
// Freeze.
func NewCheckpoint(fs vfs.FS, dir string, id kraft.SnapshotID, opts CheckpointOptions) (*SnapshotWriter, error) {
	return newCheckpoint(fs, dir, snapshotName(id), id, opts)
}

// NewLegacyBootstrap starts dir/bootstrap.checkpoint, the form Kafka 4.0 to 4.3 read in the root of a log directory (K-105).
func NewLegacyBootstrap(fs vfs.FS, dir string, opts CheckpointOptions) (*SnapshotWriter, error) {
	return newCheckpoint(fs, dir, legacyBootstrap, kraft.BootstrapSnapshotID, opts)
}

func newCheckpoint(fs vfs.FS, dir, name string, id kraft.SnapshotID, opts CheckpointOptions) (*SnapshotWriter, error) {
	f, part, err := createPart(fs, dir, id)
	if err != nil {
		return nil, err
	}
	w := &SnapshotWriter{fs: fs, f: f, dir: dir, part: part, name: name, id: id, timestamp: opts.LastContainedTimestamp, batchLimit: maxBatchBytes}
	records := []controlValue{{record.ControlSnapshotHeader, &protocol.SnapshotHeaderRecord{LastContainedLogTimestamp: opts.LastContainedTimestamp}}}
	if opts.KRaftVersion > 0 {
		records = append(records, controlValue{record.ControlKRaftVersion, &protocol.KRaftVersionRecord{KRaftVersion: opts.KRaftVersion}})
		if opts.Voters != nil {
			records = append(records, controlValue{record.ControlKRaftVoters, kraft.VotersMessage(opts.Voters)})
		}
	}
	if err := w.control(records); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// createPart makes a new .part file. Its mode stays what a finished snapshot's is: readable by its owner, written by nobody else (K-64).
func createPart(fs vfs.FS, dir string, id kraft.SnapshotID) (vfs.File, string, error) {
	for try := 0; ; try++ {
		part := join(dir, fmt.Sprintf("%s-%d%s", id, try, partSuffix))
		f, err := fs.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o400)
		if errors.Is(err, os.ErrExist) && try < 1000 {
			continue
		}
		return f, part, err
	}
}

type controlValue struct {
	kind  record.ControlType
	value protocol.Message
}

func (w *SnapshotWriter) options(control bool) record.BatchOptions {
	opt := record.NewBatchOptions()
	opt.BaseOffset, opt.LeaderEpoch, opt.Control = w.next, w.id.Epoch, control
	return opt
}

// control writes one control batch. Its records carry the time of the last contained record: a snapshot depends on nothing else.
func (w *SnapshotWriter) control(records []controlValue) error {
	if err := w.flush(); err != nil {
		return err
	}
	b := record.NewBuilder(w.options(true))
	for _, r := range records {
		value, err := r.value.Append(nil, 0)
		if err != nil {
			return err
		}
		b.Append(w.timestamp, record.ControlKey(r.kind), value, nil)
	}
	return w.write(b)
}

func (w *SnapshotWriter) write(b *record.Builder) error {
	n := int64(b.Count())
	w.scratch = b.Build(w.scratch[:0])
	if _, err := w.f.WriteAt(w.scratch, w.pos); err != nil {
		w.err = err
		return err
	}
	w.pos += int64(len(w.scratch))
	w.next += n
	return nil
}

func (w *SnapshotWriter) flush() error {
	if w.err != nil || w.builder == nil || w.builder.Count() == 0 {
		return w.err
	}
	b := w.builder
	w.builder = nil
	return w.write(b)
}

// Append adds records; they are cut into batches of at most 1024 records and 8 MiB.
func (w *SnapshotWriter) Append(records []Record) error {
	if w.done {
		return fmt.Errorf("snapshot %s is closed already", w.id)
	}
	for _, r := range records {
		if w.builder != nil && (w.builder.Count() >= recordsPerBatch || w.builder.UncompressedBytes()+len(r)+32 > w.batchLimit) {
			if err := w.flush(); err != nil {
				return err
			}
		}
		if w.err != nil {
			return w.err
		}
		if w.builder == nil {
			w.builder = record.NewBuilder(w.options(false))
		}
		w.builder.Append(w.timestamp, nil, r, nil)
	}
	return nil
}

// ID is what the snapshot will be called.
func (w *SnapshotWriter) ID() kraft.SnapshotID { return w.id }

// SizeInBytes is what was written so far.
func (w *SnapshotWriter) SizeInBytes() int64 { return w.pos }

// Freeze writes the footer, syncs, and gives the file its name (K-64).
func (w *SnapshotWriter) Freeze() error {
	if w.done {
		return fmt.Errorf("snapshot %s is closed already", w.id)
	}
	if err := w.control([]controlValue{{record.ControlSnapshotFooter, &protocol.SnapshotFooterRecord{}}}); err != nil {
		w.Close()
		return err
	}
	err := w.f.Sync()
	if cerr := w.f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = w.fs.Rename(w.part, join(w.dir, w.name))
	}
	if err == nil {
		err = w.fs.SyncDir(w.dir)
	}
	w.done = true
	if w.closed != nil {
		w.closed()
	}
	if err == nil && w.frozen != nil {
		w.frozen(kraft.SnapshotInfo{ID: w.id, Size: w.pos})
	}
	return err
}

// Close drops a snapshot that was not frozen; after Freeze it does nothing.
func (w *SnapshotWriter) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.closed != nil {
		w.closed()
	}
	w.f.Close()
	return w.fs.Remove(w.part)
}
