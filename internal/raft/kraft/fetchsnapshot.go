package kraft

import (
	"time"

	"samsa/internal/base/kerr"
)

func (c *Core) handleFetchSnapshot(token uint64, r *FetchSnapshotRequest) {
	fail := func(e *kerr.Error) { c.reply(token, &FetchSnapshotResponse{Status: c.statusOf(e), ID: r.ID}) }
	if e := c.checkLeaderRequest(r.Epoch); e != nil {
		fail(e)
		return
	}
	s, ok := c.log.findSnapshot(r.ID)
	if !ok || r.ID.IsBootstrap() {
		fail(kerr.SnapshotNotFound)
		return
	}
	if r.Position < 0 || r.Position >= s.Size {
		fail(kerr.PositionOutOfRange)
		return
	}
	if r.Replica.ID >= 0 && r.Replica.ID != c.cfg.Self.ID {
		c.heardFrom(r.Replica)
	}
	c.emit(Reply{Token: token,
		Message:      &FetchSnapshotResponse{Status: c.statusOf(nil), ID: r.ID, Size: s.Size, Position: r.Position},
		ReadSnapshot: &ReadSnapshot{r.ID, r.Position, r.MaxBytes}})
}

// snapshotTopLevel: Kafka 4.4.0 cannot encode a partition error, it arrives as a top-level -1. Whatever it was, start over with a
// fetch (K-44).
func (c *Core) snapshotTopLevel(r *FetchSnapshotResponse) bool {
	if c.role == Follower && c.follow.snapshot != nil && r.TopLevel != kerr.BrokerNotAvailable.Code {
		c.dropDownload("the leader answered", kerr.ForCode(r.TopLevel))
	}
	return r.TopLevel == kerr.UnknownServerError.Code
}

func (c *Core) dropDownload(why string, what any) {
	s := c.follow.snapshot
	c.follow.snapshot = nil
	c.emit(DropSnapshot{s.id})
	c.note(true, "raft: gave up a snapshot download", "snapshot", s.id, why, what)
}

func (c *Core) handleFetchSnapshotResponse(r *FetchSnapshotResponse) bool {
	if c.role != Follower || c.follow.snapshot == nil {
		return c.unexpected(c.leader, &r.Status)
	}
	s := c.follow.snapshot
	switch {
	case r.Error == kerr.SnapshotNotFound.Code || r.Error == kerr.PositionOutOfRange.Code || r.Error == 0 && (r.ID.Offset < 0 || r.ID.Epoch < 0):
		c.dropDownload("error", kerr.ForCode(r.Error))
		c.fetchSucceeded()
		return true
	case r.Error != 0:
		return c.unexpected(c.leader, &r.Status)
	case r.ID != s.id || r.Position != s.position || s.position+int64(len(r.Bytes)) > r.Size || len(r.Bytes) == 0:
		c.dropDownload("the piece does not fit", r.Position)
		return false
	}
	c.emit(WriteSnapshot{ID: s.id, Position: s.position, Bytes: r.Bytes})
	s.position += int64(len(r.Bytes))
	if s.position == r.Size {
		s.installing = true
		c.emit(InstallSnapshot{s.id})
	}
	c.fetchSucceeded()
	return true
}

// Installed says that the downloaded snapshot is in place and the log starts, empty, at its offset. version and voters are those of its
// header (K-45).
func (c *Core) Installed(now time.Time, s SnapshotInfo, version int16, voters VoterSet) {
	c.at(now)
	c.log.resetTo(s, version, voters)
	c.follow.snapshot = nil
	c.floor = max(c.floor, s.ID.Offset)
	c.setHighWatermark(s.ID.Offset)
	c.note(false, "raft: log starts at a downloaded snapshot", "snapshot", s.ID)
	c.step()
}

// InstallFailed says that the downloaded file was no good; it is fetched again.
func (c *Core) InstallFailed(now time.Time, why error) {
	c.at(now)
	if c.role == Follower && c.follow.snapshot != nil {
		c.dropDownload("damaged", why)
	}
	c.step()
}
