package node

import (
	"context"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/raft/kraft"
	"samsa/internal/wire/protocol"
)

// reply is what a handler waits for: the core's message and the bytes it asked for.
type reply struct {
	message any
	bytes   []byte
}

// call runs one request through the core and waits for its reply.
func (n *Node) call(ctx context.Context, message any) (reply, error) {
	c := make(chan reply, 1)
	n.mu.Lock()
	if n.failure != nil || n.isStopped() {
		n.mu.Unlock()
		return reply{}, ErrStopped
	}
	n.nextToken++
	token := n.nextToken
	n.waiting[token] = c
	n.inbox = append(n.inbox, func(now time.Time) { n.core.Request(now, token, message) })
	n.mu.Unlock()
	n.wakeUp()
	select {
	case r, ok := <-c:
		if !ok {
			return reply{}, ErrStopped
		}
		return r, nil
	case <-n.stopped:
		return reply{}, ErrStopped
	case <-ctx.Done():
		n.push(func(time.Time) {
			n.core.Forget(token)
			delete(n.waiting, token)
		})
		return reply{}, context.Cause(ctx)
	}
}

func (n *Node) isStopped() bool {
	select {
	case <-n.stopped:
		return true
	default:
		return false
	}
}

// answer carries out a Reply effect: it reads what belongs into the response.
func (n *Node) answer(e kraft.Reply) {
	n.mu.Lock()
	c := n.waiting[e.Token]
	delete(n.waiting, e.Token)
	n.mu.Unlock()
	if c == nil {
		return // nobody waits any more
	}
	r := reply{message: e.Message}
	switch {
	case e.Read != nil:
		b, _, err := n.store.read(e.Read.Offset, n.store.log.LogEndOffset(), int(e.Read.MaxBytes))
		if err != nil {
			n.log.Error("raft: the metadata log cannot be read for a fetch", "offset", e.Read.Offset, "err", err)
			m := *e.Message.(*kraft.FetchResponse)
			m.Error, m.HighWatermark = kerr.UnknownServerError.Code, -1
			r.message = &m
		}
		r.bytes = b
	case e.ReadSnapshot != nil:
		b, err := n.readPiece(e.ReadSnapshot)
		if err != nil {
			n.log.Warn("raft: a snapshot cannot be read for a fetch", "snapshot", e.ReadSnapshot.ID, "err", err)
			m := *e.Message.(*kraft.FetchSnapshotResponse)
			m.Error = kerr.SnapshotNotFound.Code
			r.message = &m
		}
		r.bytes = b
	}
	c <- r
}

func (n *Node) readPiece(p *kraft.ReadSnapshot) ([]byte, error) {
	r, err := n.store.openSnapshot(p.ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	size := min(int64(max(p.MaxBytes, 1)), r.size-p.Position, maxBatchBytes)
	b := make([]byte, size)
	_, err = r.f.ReadAt(b, p.Position)
	return b, err
}

// The raft RPCs. Each takes a decoded request as it came in on the named controller listener, at a version, and returns the response to
// encode at that version; err is only ctx's or ErrStopped. They block while the protocol says so (a parked fetch).

// Vote is K-21, K-22, K-36, K-38, K-39.
func (n *Node) Vote(ctx context.Context, listener string, version int16, r *protocol.VoteRequest) (*protocol.VoteResponse, error) {
	m, code := kraft.DecodeVote(n.opts.ClusterID, r)
	if m == nil {
		return &protocol.VoteResponse{ErrorCode: code}, nil
	}
	o, err := n.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return kraft.EncodeVoteResponse(o.message.(*kraft.VoteResponse), listener, version), nil
}

// BeginQuorumEpoch is K-28, K-37, K-38.
func (n *Node) BeginQuorumEpoch(ctx context.Context, listener string, version int16, r *protocol.BeginQuorumEpochRequest) (*protocol.BeginQuorumEpochResponse, error) {
	m, code := kraft.DecodeBeginQuorumEpoch(n.opts.ClusterID, r)
	if m == nil {
		return &protocol.BeginQuorumEpochResponse{ErrorCode: code}, nil
	}
	o, err := n.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return kraft.EncodeBeginQuorumEpochResponse(o.message.(*kraft.BeginQuorumEpochResponse), listener, version), nil
}

// EndQuorumEpoch is K-29, K-37, K-38.
func (n *Node) EndQuorumEpoch(ctx context.Context, listener string, version int16, r *protocol.EndQuorumEpochRequest) (*protocol.EndQuorumEpochResponse, error) {
	m, code := kraft.DecodeEndQuorumEpoch(n.opts.ClusterID, r)
	if m == nil {
		return &protocol.EndQuorumEpochResponse{ErrorCode: code}, nil
	}
	o, err := n.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return kraft.EncodeEndQuorumEpochResponse(o.message.(*kraft.EndQuorumEpochResponse), listener, version), nil
}

// Fetch is K-41..K-43, K-53.
func (n *Node) Fetch(ctx context.Context, listener string, version int16, r *protocol.FetchRequest) (*protocol.FetchResponse, error) {
	m, code := kraft.DecodeFetch(n.opts.ClusterID, r)
	if m == nil {
		o := protocol.Make[protocol.FetchResponse]()
		o.ErrorCode = code
		return &o, nil
	}
	o, err := n.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return kraft.EncodeFetchResponse(o.message.(*kraft.FetchResponse), o.bytes, listener, version), nil
}

// FetchSnapshot is K-44.
func (n *Node) FetchSnapshot(ctx context.Context, listener string, version int16, r *protocol.FetchSnapshotRequest) (*protocol.FetchSnapshotResponse, error) {
	m, failed := kraft.DecodeFetchSnapshot(n.opts.ClusterID, r)
	if m == nil {
		return failed, nil
	}
	o, err := n.call(ctx, m)
	if err != nil {
		return nil, err
	}
	return kraft.EncodeFetchSnapshotResponse(o.message.(*kraft.FetchSnapshotResponse), o.bytes, listener, version), nil
}

// DescribeQuorum is K-46.
func (n *Node) DescribeQuorum(ctx context.Context, version int16, r *protocol.DescribeQuorumRequest) (*protocol.DescribeQuorumResponse, error) {
	if failed := kraft.DecodeDescribeQuorum(r); failed != nil {
		return failed, nil
	}
	o, err := n.call(ctx, &kraft.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	return kraft.EncodeDescribeQuorumResponse(o.message.(*kraft.DescribeResponse), version), nil
}
