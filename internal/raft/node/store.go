package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
	"samsa/internal/raft/kraft"
	"samsa/internal/storage/epochs"
	"samsa/internal/storage/partlog"
	"samsa/internal/storage/producerstate"
	"samsa/internal/wire/record"
)

// LogDirName is the directory of the metadata log inside metadata.log.dir.
const LogDirName = kraft.MetadataTopic + "-0"

// store is everything on disk: segments, snapshots, quorum-state. Methods that change the log are called by the loop only.
type store struct {
	fs   vfs.FS
	dir  string // …/__cluster_metadata-0
	root string // metadata.log.dir
	log  *partlog.Log
	env  *partlog.Env
	out  *slog.Logger
	now  func() int64

	mu    sync.Mutex
	trash []trash   // files renamed to .deleted, to be removed a minute later
	part  *partFile // of a snapshot being fetched
}

type trash struct {
	path string
	due  int64
}

// partFile is a snapshot being downloaded.
type partFile struct {
	id   kraft.SnapshotID
	f    vfs.File
	path string
	pos  int64
}

const deleteDelayMs = 60_000 // K-62

// openStore loads the directory. The state it returns is what the core starts from.
func openStore(opts *Options, out *slog.Logger, now func() int64) (*store, kraft.LogState, error) {
	s := &store{fs: opts.FS, root: opts.Dir, dir: join(opts.Dir, LogDirName), out: out, now: now}
	var state kraft.LogState
	if err := s.makeDir(); err != nil {
		return nil, state, err
	}
	snaps, leftovers, err := listSnapshots(s.fs, s.dir)
	if err != nil {
		return nil, state, err
	}
	segs, err := listSegments(s.fs, s.dir)
	if err != nil {
		return nil, state, err
	}
	if err := s.refuseLost(segs, snaps); err != nil {
		return nil, state, err
	}
	if segs, err = s.verify(segs, snaps); err != nil {
		return nil, state, err
	}
	closed, err := closedAt(s.fs, s.dir) // before the log is opened, which removes what is beyond its end
	if err != nil {
		return nil, state, unreadable(err)
	}
	seen := s.readEpochFile()
	start := int64(0)
	if len(segs) > 0 {
		start = segs[0].base
	}
	cfg := partlog.DefaultConfig()
	cfg.SegmentBytes, cfg.SegmentMs = int64(opts.Config.SegmentBytes), opts.Config.SegmentAge.Milliseconds()
	cfg.RetentionMs, cfg.RetentionBytes, cfg.FileDeleteDelayMs = -1, -1, deleteDelayMs
	s.env = &partlog.Env{Files: partlog.NewFiles(32), Log: out, SyncRolls: true, Discard: func(_ *partlog.Log, files []string) { s.discard(files...) }}
	log, info, err := partlog.Open(partlog.Options{FS: s.fs, Dir: s.dir, Partition: model.TopicPartition{Topic: kraft.MetadataTopic},
		TopicID: model.MetadataTopicID, Env: s.env, Config: cfg, LogStartOffset: start, New: len(segs) == 0 && len(snaps) == 0, Now: now()})
	if err != nil {
		return nil, state, fmt.Errorf("the metadata log in %s cannot be opened: %w", s.dir, err)
	}
	s.log = log
	if len(segs) == 0 { // a vote must never be more durable than the log it speaks of
		if err := s.fs.SyncDir(s.dir); err != nil {
			log.Abandon()
			return nil, state, err
		}
	}
	if info.BytesTruncated > 0 {
		out.Warn("raft: cut a torn tail off the metadata log", "bytes", info.BytesTruncated, "logEnd", log.LogEndOffset())
	}
	if err := s.recoverSnapshots(&state, snaps, leftovers); err != nil {
		log.Abandon()
		return nil, state, err
	}
	if err := s.readControl(&state); err != nil {
		log.Abandon()
		return nil, state, err
	}
	if err := s.refuseShort(&state, seen, closed, opts); err != nil {
		log.Abandon()
		return nil, state, err
	}
	return s, state, nil
}

// verify drops segments that are damaged or incomplete where a snapshot stands for them.
func (s *store) verify(segs []logSegment, snaps []snapshotFile) ([]logSegment, error) {
	newest := int64(-1)
	if n := len(snaps); n > 0 && !snaps[n-1].id.IsBootstrap() {
		newest = snaps[n-1].id.Offset
	}
	closed, err := closedAt(s.fs, s.dir)
	if err != nil {
		return nil, unreadable(err)
	}
	keep, why, err := verifyLog(s.fs, segs, newest, closed)
	if err != nil || keep == 0 {
		return segs, err
	}
	s.out.Warn("raft: dropped the metadata log below a snapshot", "logStart", segs[keep].base, "why", why)
	for _, seg := range segs[:keep] {
		for _, suffix := range []string{".log", ".index", ".timeindex", ".txnindex"} {
			path := strings.TrimSuffix(seg.path, ".log") + suffix
			if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	return segs[keep:], s.fs.SyncDir(s.dir)
}

// readEpochFile reads leader-epoch-checkpoint as it was before the log is opened, which may shorten it.
func (s *store) readEpochFile() []epochs.Entry {
	data, err := vfs.ReadFile(s.fs, join(s.dir, epochs.FileName))
	if err != nil {
		return nil
	}
	c, err := epochs.Parse(data)
	if err != nil {
		return nil
	}
	return c.Entries()
}

// refuseShort keeps a single voter from going on with a log that lost its end or all of it. leader-epoch-checkpoint is written after the
// records it speaks of were synced (Kafka may write its last line just before them), so an epoch that begins beyond the log was there once;
// and closed is an offset up to which the log was synced when it was closed.
func (s *store) refuseShort(state *kraft.LogState, seen []epochs.Entry, closed int64, opts *Options) error {
	voters := opts.StaticVoters
	for _, r := range state.Control {
		if r.Voters != nil {
			voters = r.Voters
		}
	}
	if !voters.IsOnlyVoter(kraft.ReplicaKey{ID: opts.NodeID, Directory: opts.Directory}) {
		return nil // the other voters have it
	}
	covered := int64(-1)
	if n := len(state.Snapshots); n > 0 && !state.Snapshots[n-1].ID.IsBootstrap() {
		covered = state.Snapshots[n-1].ID.Offset
	}
	if n := len(seen); n > 0 {
		last := seen[n-1]
		short := last.Start > state.End || last.Start == state.End && state.End == state.Start
		if short && covered < last.Start {
			return fmt.Errorf("the metadata log in %s ends at offset %d, but %s says that leader epoch %d began at offset %d: records that were acknowledged are gone, "+
				"and no other voter has them. Restore the directory from a backup; to go on without them all the same, remove %s", s.dir, state.End,
				epochs.FileName, last.Epoch, last.Start, epochs.FileName)
		}
	}
	if closed > state.End && covered < closed {
		return fmt.Errorf("the metadata log in %s ends at offset %d, but it was closed at offset %d, as %020d.snapshot says: records that were acknowledged are gone, "+
			"and no other voter has them. Restore the directory from a backup; to go on without them all the same, remove %020d.snapshot", s.dir, state.End, closed, closed, closed)
	}
	return nil
}

func (s *store) makeDir() error {
	err := s.fs.Mkdir(s.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	} else if err == nil {
		err = s.fs.SyncDir(s.root)
	}
	if err != nil {
		return fmt.Errorf("the metadata log's directory: %w", err)
	}
	path := join(s.dir, "partition.metadata")
	if ok, err := exists(s.fs, path); err != nil || ok {
		return err
	}
	return vfs.WriteFileAtomic(s.fs, path, []byte("version: 0\ntopic_id: "+model.MetadataTopicID.String())) // K-59, D-44: no newline at the end
}

// refuseLost keeps a node whose log vanished from starting with an empty one. A quorum-state file means that the node ran here, and
// then at least one segment exists, even an empty one.
func (s *store) refuseLost(segs []logSegment, snaps []snapshotFile) error {
	if len(segs) > 0 || len(snaps) > 0 && !snaps[len(snaps)-1].id.IsBootstrap() {
		return nil
	}
	state := join(s.dir, quorumStateFile)
	if ok, err := exists(s.fs, state); err != nil || !ok {
		return err
	}
	return fmt.Errorf("%s says that this node took part in the quorum, but the directory holds neither a log segment nor a snapshot: the metadata log was lost. "+
		"It is not started empty. Restore %s from a backup; or, if a majority of the other voters runs, move the directory away and let this node fetch the log again", state, s.dir)
}

// recoverSnapshots removes what is left over and checks that log and snapshots fit together (K-63, K-70, K-71).
func (s *store) recoverSnapshots(state *kraft.LogState, snaps, leftovers []snapshotFile) error {
	start := s.log.LogStartOffset()
	for _, f := range leftovers {
		if err := s.fs.Remove(join(s.dir, f.name)); err != nil {
			return err
		}
	}
	kept := snaps[:0]
	for _, f := range snaps {
		if f.id.Offset < start {
			if err := s.fs.Remove(join(s.dir, f.name)); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, f)
	}
	if start > 0 && len(kept) == 0 {
		return fmt.Errorf("the metadata log in %s begins at offset %d, but there is no snapshot at or above it: what was before is lost. "+
			"Restore the .checkpoint file from a backup, or copy the newest one of another node into the directory", s.dir, start)
	}
	if len(kept) > 0 {
		newest := kept[len(kept)-1].id
		last := max(int32(s.log.LatestEpoch()), 0)
		if newest.Epoch > last || newest.Epoch == last && newest.Offset > s.log.LogEndOffset() {
			if newest.Offset != s.log.LogEndOffset() || s.log.LogStartOffset() != newest.Offset {
				s.out.Info("raft: the newest snapshot is beyond the log; the log starts again behind it", "snapshot", newest, "logEnd", s.log.LogEndOffset())
			}
			if err := s.log.TruncateFullyAndStartAt(newest.Offset, s.now()); err != nil {
				return err
			}
			for _, f := range kept[:len(kept)-1] {
				if err := s.deleteSnapshot(f.id); err != nil {
					return err
				}
			}
			kept = kept[len(kept)-1:]
		}
	}
	for _, f := range kept {
		info, err := s.fs.Stat(join(s.dir, f.name))
		if err != nil {
			return err
		}
		state.Snapshots = append(state.Snapshots, kraft.SnapshotInfo{ID: f.id, Size: info.Size()})
	}
	return nil
}

// readControl collects voters and kraft.version from the newest snapshot and the log behind it (K-80).
func (s *store) readControl(state *kraft.LogState) error {
	state.Start, state.End = s.log.LogStartOffset(), s.log.LogEndOffset()
	for _, e := range s.log.Epochs() {
		state.Epochs = append(state.Epochs, kraft.EpochStart{Epoch: int32(e.Epoch), Start: e.Start})
	}
	from := state.Start
	if n := len(state.Snapshots); n > 0 {
		id := state.Snapshots[n-1].ID
		r, err := s.openSnapshot(id)
		if err != nil {
			return err
		}
		if v := r.KRaftVersion(); v > 0 {
			state.Control = append(state.Control, kraft.ControlRecord{Offset: id.Offset - 1, KRaftVersion: &v})
		}
		if r.Voters() != nil {
			state.Control = append(state.Control, kraft.ControlRecord{Offset: id.Offset - 1, Voters: r.Voters()})
		}
		r.Close()
		from = max(from, id.Offset)
	}
	var buf []byte
	for from < state.End {
		b, next, err := s.log.ReadBatches(s.buffer(buf, from, state.End, 4<<20), from, state.End)
		if err != nil {
			return fmt.Errorf("the metadata log in %s cannot be read at offset %d: %w", s.dir, from, err)
		}
		if len(b) == 0 {
			return fmt.Errorf("the metadata log in %s ends at offset %d instead of %d", s.dir, from, state.End)
		}
		for batch, err := range record.Split(b) {
			if err != nil {
				return fmt.Errorf("the metadata log in %s is damaged near offset %d: %w", s.dir, from, err)
			}
			if !batch.IsControl() {
				continue
			}
			p, err := kraft.ParseBatch(batch)
			if err != nil {
				return fmt.Errorf("the metadata log in %s: %w", s.dir, err)
			}
			state.Control = append(state.Control, p.Control...)
		}
		buf, from = b, next
	}
	return nil
}

// buffer gives room for the batches of [from, to), at most most bytes unless the first batch needs more.
func (s *store) buffer(buf []byte, from, to int64, most int) []byte {
	n, err := s.log.BytesBetween(from, to)
	if err != nil || n > int64(most) {
		n = int64(most)
	}
	if int64(cap(buf)) >= n {
		return buf[:cap(buf)]
	}
	return make([]byte, n)
}

// read copies whole batches from offset on, about most bytes.
func (s *store) read(from, to int64, most int) ([]byte, int64, error) {
	return s.log.ReadBatches(s.buffer(nil, from, to, max(most, 1)), from, to)
}

func (s *store) openSnapshot(id kraft.SnapshotID) (*SnapshotReader, error) {
	return OpenSnapshot(s.fs, join(s.dir, snapshotName(id)), id)
}

// append writes batches whose offsets and epochs are decided already.
func (s *store) append(batches []kraft.Batch, epoch int32, leader bool) error {
	var data []byte
	if len(batches) == 1 {
		data = batches[0].Data
	} else {
		n := 0
		for _, b := range batches {
			n += len(b.Data)
		}
		data = make([]byte, 0, n)
		for _, b := range batches {
			data = append(data, b.Data...)
		}
	}
	var info partlog.AppendInfo
	var err error
	if leader {
		info, err = s.log.AppendAsLeader(partlog.LeaderAppend{Records: data, Epoch: model.LeaderEpoch(epoch), Origin: producerstate.OriginReplication, Now: s.now()})
	} else {
		info, err = s.log.AppendAsFollower(partlog.FollowerAppend{Records: data, Epoch: model.LeaderEpoch(epoch), Contiguous: true, Now: s.now()})
	}
	if err == nil {
		err = info.Refused
	}
	if err == nil && (info.BaseOffset != batches[0].Base || info.LastOffset != batches[len(batches)-1].Last) {
		err = fmt.Errorf("batches %d-%d came to lie at %d-%d", batches[0].Base, batches[len(batches)-1].Last, info.BaseOffset, info.LastOffset)
	}
	return err
}

func (s *store) truncate(end int64) error {
	if _, err := s.log.TruncateTo(end, s.now()); err != nil {
		return err
	}
	return s.log.Flush(s.now())
}

// writePiece stores a piece of a snapshot being fetched.
func (s *store) writePiece(id kraft.SnapshotID, pos int64, b []byte) error {
	if s.part == nil || s.part.id != id || pos == 0 {
		s.dropPart()
		f, path, err := createPart(s.fs, s.dir, id)
		if err != nil {
			return err
		}
		s.part = &partFile{id: id, f: f, path: path}
	}
	if pos != s.part.pos {
		return fmt.Errorf("piece of snapshot %s at %d does not follow %d", id, pos, s.part.pos)
	}
	if _, err := s.part.f.WriteAt(b, pos); err != nil {
		return err
	}
	s.part.pos += int64(len(b))
	return nil
}

func (s *store) dropPart() {
	if s.part == nil {
		return
	}
	s.part.f.Close()
	if err := s.fs.Remove(s.part.path); err != nil {
		s.out.Warn("raft: an unfinished snapshot stays until the next start", "path", s.part.path, "err", err)
	}
	s.part = nil
}

// install makes a complete download the beginning of the log (K-45). A bad file is a *SnapshotError; other errors are the disk's.
func (s *store) install(id kraft.SnapshotID) (kraft.SnapshotInfo, int16, kraft.VoterSet, error) {
	var none kraft.SnapshotInfo
	p := s.part
	if p == nil || p.id != id {
		return none, 0, nil, fmt.Errorf("no download of snapshot %s", id)
	}
	if err := p.f.Sync(); err != nil {
		return none, 0, nil, err
	}
	r, err := OpenSnapshot(s.fs, p.path, id)
	if err != nil {
		return none, 0, nil, err
	}
	defer r.Close()
	for {
		if _, err := r.Next(); err != nil {
			if isEOF(err) {
				break
			}
			return none, 0, nil, err
		}
	}
	s.part = nil
	p.f.Close()
	if err := s.fs.Rename(p.path, join(s.dir, snapshotName(id))); err != nil {
		return none, 0, nil, err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return none, 0, nil, err
	}
	// A crash here leaves a snapshot beyond the log: the next start does the rest (K-71).
	if err := s.log.TruncateFullyAndStartAt(id.Offset, s.now()); err != nil {
		return none, 0, nil, err
	}
	if err := s.log.Flush(s.now()); err != nil {
		return none, 0, nil, err
	}
	done, _, err := listSnapshots(s.fs, s.dir)
	if err != nil {
		return none, 0, nil, err
	}
	for _, f := range done {
		if f.id.Less(id) {
			if err := s.deleteSnapshot(f.id); err != nil {
				return none, 0, nil, err
			}
		}
	}
	return kraft.SnapshotInfo{ID: id, Size: p.pos}, r.KRaftVersion(), r.Voters(), nil
}

// deleteSnapshot renames it at once and removes it a minute later, so that whoever reads it can finish (K-69).
func (s *store) deleteSnapshot(id kraft.SnapshotID) error {
	path := join(s.dir, snapshotName(id))
	if err := s.fs.Rename(path, path+".deleted"); err != nil {
		return err
	}
	s.discard(path + ".deleted")
	return nil
}

func (s *store) discard(files ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		s.trash = append(s.trash, trash{f, s.now() + deleteDelayMs})
	}
}

// emptyTrash removes files whose time has come; what fails is left to the next start.
func (s *store) emptyTrash(all bool) {
	s.mu.Lock()
	var due []string
	kept := s.trash[:0]
	for _, t := range s.trash {
		if all || t.due <= s.now() {
			due = append(due, t.path)
			continue
		}
		kept = append(kept, t)
	}
	s.trash = kept
	s.mu.Unlock()
	for _, path := range due {
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.out.Warn("raft: a deleted file cannot be removed", "path", path, "err", err)
		}
	}
}

func (s *store) close() error {
	s.dropPart()
	s.emptyTrash(true)
	return s.log.Close(s.now())
}
