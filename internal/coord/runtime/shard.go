package runtime

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/coord/group"
	"samsa/internal/meta/image"
	"samsa/internal/replica/manager"
	"samsa/internal/wire/record"
)

// message is one thing for a shard to do. Exactly one of run and fail is called, unless it is later (nobody waits for it).
type message struct {
	run  func(now int64, c *group.Core)
	fail func(error) // the shard is loading, or does not lead any more
	// later: not an answer to anybody; while loading it waits.
	later bool
}

type shardState uint8

const (
	loading shardState = iota
	active
	unloaded
)

// shard is one led partition.
type shard struct {
	g  *Groups
	tp model.TopicIDPartition

	mu      sync.Mutex
	state   shardState        // guarded by mu
	err     error             // guarded by mu: unloaded: what requests get
	epoch   model.LeaderEpoch // guarded by mu
	queue   []message         // guarded by mu
	held    []message         // guarded by mu: later ones, while loading
	running bool              // guarded by mu: a goroutine runs the mailbox
	idle    chan struct{}     // guarded by mu: closed when running ends; nil while nobody waits
	timer   *time.Timer       // guarded by mu
	timerAt int64             // guarded by mu: when timer fires; 0 when it does not
	// unchecked: the image at hand when the partition was loaded was too old to tell which topics are gone.
	unchecked bool // guarded by mu

	core *group.Core // owned by whoever runs the mailbox; while loading by the loader

	tally atomic.Pointer[group.Tally] // as of the last time the mailbox was emptied

	builder *record.Builder // of the same owner
	buf     []byte
}

// post hands m to the shard.
func (s *shard) post(m message) {
	s.mu.Lock()
	switch {
	case s.state == unloaded:
		err := s.err
		s.mu.Unlock()
		if m.fail != nil {
			m.fail(err)
		}
		return
	case s.state == loading && m.later:
		s.held = append(s.held, m)
		s.mu.Unlock()
		return
	case s.state == loading:
		s.mu.Unlock()
		m.fail(kerr.CoordinatorLoadInProgress)
		return
	}
	s.queue = append(s.queue, m)
	s.start()
	s.mu.Unlock()
}

// settle queues what became of a batch, whatever the state: the core answers those who wait for it.
func (s *shard) settle(id uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, message{run: func(now int64, c *group.Core) { c.Appended(now, id, err) }})
	s.start()
}

// start makes sure that the mailbox runs. mu is held.
func (s *shard) start() {
	if !s.running {
		s.running = true
		go s.run()
	}
}

// run empties the mailbox and ends.
func (s *shard) run() {
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		if len(batch) == 0 {
			s.running = false
			if s.idle != nil {
				close(s.idle)
				s.idle = nil
			}
			s.mu.Unlock()
			return
		}
		epoch := s.epoch
		s.mu.Unlock()
		for _, m := range batch {
			m.run(s.g.now(), s.core)
		}
		s.carryOut(epoch)
	}
}

// carryOut does what the core has decided.
func (s *shard) carryOut(epoch model.LeaderEpoch) {
	e := s.core.Effects()
	s.append(epoch, e.Batches)
	for _, reply := range e.Replies {
		reply()
	}
	for _, n := range e.Notes {
		args := append([]any{"partition", s.tp.Partition}, n.Args...)
		if n.Warn {
			s.g.log.Warn(n.Text, args...)
		} else {
			s.g.log.Info(n.Text, args...)
		}
	}
	s.alarm(e.Deadline)
	if t := s.core.Tally(); s.tally.Load() == nil || *s.tally.Load() != t {
		s.tally.Store(&t)
	}
}

// alarm sets the timer for the core's next deadline.
func (s *shard) alarm(deadline int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == unloaded || deadline == group.NoDeadline {
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timerAt = 0
		return
	}
	if deadline == s.timerAt {
		return
	}
	s.timerAt = deadline
	wait := max(time.Duration(deadline-s.g.now())*time.Millisecond, 0)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.tick)
		return
	}
	s.timer.Reset(wait)
}

func (s *shard) tick() {
	s.mu.Lock()
	s.timerAt = 0
	s.mu.Unlock()
	s.post(message{later: true, run: func(now int64, c *group.Core) { c.Tick(now) }})
}

// append writes the core's batches. What came together goes in one write; when that is refused each
// is tried by itself, so that only the one at fault fails.
func (s *shard) append(epoch model.LeaderEpoch, batches []group.Batch) {
	if len(batches) == 0 {
		return
	}
	if err := s.write(epoch, batches); err == nil {
		return
	} else if len(batches) == 1 {
		s.settle(batches[0].ID, err)
		return
	}
	for i := range batches {
		if err := s.write(epoch, batches[i:i+1]); err != nil {
			s.settle(batches[i].ID, err)
		}
	}
}

// write appends batches with one call.
func (s *shard) write(epoch model.LeaderEpoch, batches []group.Batch) error {
	codec := record.Codec(s.g.o.Config().Group.OffsetsTopicCodec)
	if !codec.Valid() {
		codec = record.None
	}
	now := s.g.now()
	s.buf = s.buf[:0]
	for i := range batches {
		opt := record.NewBatchOptions()
		opt.Codec, opt.Levels = codec, record.DefaultLevels()
		opt.BaseSequence = 0 // with no producer: as Kafka's coordinator has it (D-174)
		if s.builder == nil {
			s.builder = record.NewBuilder(opt)
		} else {
			s.builder.Reset(opt)
		}
		for _, r := range batches[i].Records {
			s.builder.Append(now, r.Key, r.Value, nil)
		}
		s.buf = s.builder.Build(s.buf)
	}
	_, err := s.g.o.Replicas.AppendCoordinator(manager.CoordinatorAppend{Partition: s.tp, Epoch: epoch, Records: s.buf}, func(err error) {
		for i := range batches {
			s.settle(batches[i].ID, err)
		}
	})
	if cap(s.buf) > 1<<20 {
		s.buf, s.builder = nil, nil
	}
	return err
}

// unload ends the shard: everybody who waits, and everybody who comes later, gets NOT_COORDINATOR.
func (s *shard) unload(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == unloaded {
		return
	}
	wasActive := s.state == active
	s.state, s.err = unloaded, kerr.NotCoordinator
	s.held = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	if !wasActive {
		return // the loader sees it and drops the core
	}
	s.g.log.Info("group coordinator of a partition ends", "partition", s.tp.Partition, "leaderEpoch", s.epoch, "reason", reason)
	s.queue = append(s.queue, message{run: func(now int64, c *group.Core) { c.Unload(now) }})
	s.start()
}

// wait returns when the mailbox has run empty.
func (s *shard) wait() {
	s.mu.Lock()
	if !s.running {
		s.mu.Unlock()
		return
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	<-idle
}

// load reads the partition and begins to serve (D-175).
func (s *shard) load() {
	begin := s.g.o.Now()
	core := group.New(group.Options{Settings: s.g.settings, UUID: s.g.uuid})
	var records, damaged int
	_, err := s.g.o.Replicas.ReadAll(s.g.ctx, s.tp, 0, int(s.g.o.Config().Group.OffsetsLoadBufferBytes), func(b []byte) error {
		if s.gone() {
			return errUnloaded
		}
		n, bad, err := replay(core, b)
		records, damaged = records+n, damaged+bad
		return err
	})
	log := s.g.log.With("partition", s.tp.Partition)
	if err != nil {
		if !s.gone() {
			log.Error("loading groups and offsets failed", "err", err)
		}
		s.mu.Lock()
		s.state, s.err, s.held = unloaded, kerr.NotCoordinator, nil
		s.mu.Unlock()
		return
	}
	if damaged > 0 {
		log.Warn("records that cannot be read were left out", "records", damaged)
	}
	s.mu.Lock()
	if s.state == unloaded {
		s.mu.Unlock()
		return
	}
	s.state, s.core = active, core
	held := s.held
	s.held = nil
	s.unchecked = true
	first := message{run: func(now int64, c *group.Core) {
		c.Loaded(now)
		s.dropGone(now, c, s.g.o.Image())
	}}
	s.queue = append(append([]message{first}, held...), s.queue...)
	epoch := s.epoch
	size := core.Tally()
	s.start()
	s.mu.Unlock()
	log.Info("group coordinator of a partition begins", "leaderEpoch", epoch, "groups", size.Groups(), "offsets", size.Offsets, "records", records,
		"took", s.g.o.Now().Sub(begin).Round(time.Millisecond))
}

var errUnloaded = errors.New("not leader any more")

func (s *shard) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == unloaded
}

// dropGone removes offsets of topics that were deleted while nobody coordinated (T-84), once. An image from before
// this broker's election could miss topics that offsets were committed for: it is not asked, and the next one is.
func (s *shard) dropGone(now int64, c *group.Core, img *image.Image) {
	_, p, ok := img.Topics().Partition(s.tp)
	s.mu.Lock()
	if !s.unchecked || !ok || p.Leader != s.g.o.NodeID || p.LeaderEpoch < s.epoch {
		s.mu.Unlock()
		return
	}
	s.unchecked = false
	s.mu.Unlock()
	c.TopicsGone(now, func(id model.TopicID) bool {
		_, live := img.Topics().ByID(id)
		return !live
	})
}

func (s *shard) isUnchecked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unchecked
}

// replay applies whole batches. Records that cannot be read are counted and left out; a batch that cannot be walked is too.
func replay(c *group.Core, b []byte) (records, damaged int, err error) {
	for batch, err := range record.Split(b) {
		if err != nil {
			return records, damaged, fmt.Errorf("a damaged batch: %w", err)
		}
		if batch.IsControl() {
			if commit, _, err := record.EndTxnMarker(batch); err == nil {
				c.EndTransaction(batch.ProducerID(), commit)
			}
			continue
		}
		producer := int64(-1)
		if batch.IsTransactional() {
			producer = batch.ProducerID()
		}
		for r, err := range record.Records(batch) {
			if err != nil {
				damaged++
				break
			}
			records++
			if err := c.Replay(r.Offset, producer, r.Key, r.Value); err != nil {
				damaged++
			}
		}
	}
	return records, damaged, nil
}
