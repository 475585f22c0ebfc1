package api

import (
	"context"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/meta/quorum"
	"samsa/internal/wire/protocol"
)

// What the controller listener serves, beside what has a file of its own. Each of these waits for the
// metadata log, so it leaves the read loop.

// request is a pointer to a request that can be decoded.
type request[T any] interface {
	*T
	protocol.Request
}

// controllerTimeout bounds an operation whose request has no timeout of its own.
const controllerTimeout = 30 * time.Second

// onController makes a serve function of a controller operation. An error answers the request as a whole.
func onController[T any, P request[T], R protocol.Response](timeout func(P) int32, f func(context.Context, *quorum.Controller, quorum.Caller, P) (R, error)) func(*call) {
	return within(func(_ *Server, req P) time.Duration {
		if timeout == nil {
			return controllerTimeout
		}
		return ms(timeout(req))
	}, f)
}

// within is onController with a limit that depends on the server.
func within[T any, P request[T], R protocol.Response](limit func(*Server, P) time.Duration, f func(context.Context, *quorum.Controller, quorum.Caller, P) (R, error)) func(*call) {
	return decoding(func(c *call, req P) {
		caller := quorum.Caller{Principal: c.principal.String(), Version: c.Version, Forwarded: c.envelope != nil}
		c.server.async(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, limit(c.server, req))
			defer cancel()
			resp, err := f(ctx, c.server.Quorum, caller, req)
			if err != nil {
				c.refuse(req, kerr.Of(err))
				return
			}
			c.Reply(resp)
		})
	})
}

// heartbeatLimit: a heartbeat that waits longer is as good as the next one (K-130).
func heartbeatLimit(s *Server, _ *protocol.BrokerHeartbeatRequest) time.Duration {
	return s.Config().BrokerHeartbeatInterval / 2
}

// plain adapts a controller operation that does not look at who asks.
func plain[P protocol.Request, R protocol.Response](f func(*quorum.Controller, context.Context, P) (R, error)) func(context.Context, *quorum.Controller, quorum.Caller, P) (R, error) {
	return func(ctx context.Context, q *quorum.Controller, _ quorum.Caller, req P) (R, error) {
		return f(q, ctx, req)
	}
}

// known adapts one that does.
func known[P protocol.Request, R protocol.Response](f func(*quorum.Controller, context.Context, quorum.Caller, P) (R, error)) func(context.Context, *quorum.Controller, quorum.Caller, P) (R, error) {
	return func(ctx context.Context, q *quorum.Controller, caller quorum.Caller, req P) (R, error) {
		return f(q, ctx, caller, req)
	}
}

// onRaft makes a serve function of a request between voters.
func onRaft[T any, P request[T], R protocol.Response](f func(s *Server, ctx context.Context, listener string, version int16, req P) (R, error)) func(*call) {
	return decoding(func(c *call, req P) {
		c.server.async(func(ctx context.Context) {
			resp, err := f(c.server, ctx, c.Conn.Listener, c.Version, req)
			if err != nil {
				c.refuse(req, kerr.Of(err))
				return
			}
			c.Reply(resp)
		})
	})
}

// controllerEntries are the keys of the controller listener alone, or served differently there.
func controllerEntries() []entry {
	return []entry{
		{protocol.KeyFetch, 4, 18, controllerRole, onRaft(func(s *Server, ctx context.Context, l string, v int16, r *protocol.FetchRequest) (*protocol.FetchResponse, error) {
			return s.Raft.Fetch(ctx, l, v, r)
		})},
		{protocol.KeyCreateTopics, 2, 7, controllerRole, onController(func(r *protocol.CreateTopicsRequest) int32 { return r.TimeoutMs }, known((*quorum.Controller).CreateTopics))},
		{protocol.KeyDeleteTopics, 1, 6, controllerRole, onController(func(r *protocol.DeleteTopicsRequest) int32 { return r.TimeoutMs }, known((*quorum.Controller).DeleteTopics))},
		{protocol.KeyAlterConfigs, 0, 2, controllerRole, onController(nil, known((*quorum.Controller).AlterConfigs))},
		{protocol.KeyCreatePartitions, 0, 3, controllerRole, onController(func(r *protocol.CreatePartitionsRequest) int32 { return r.TimeoutMs }, known((*quorum.Controller).CreatePartitions))},
		{protocol.KeyElectLeaders, 0, 2, controllerRole, onController(func(r *protocol.ElectLeadersRequest) int32 { return r.TimeoutMs }, plain((*quorum.Controller).ElectLeaders))},
		{protocol.KeyIncrementalAlterConfigs, 0, 1, controllerRole, onController(nil, known((*quorum.Controller).IncrementalAlterConfigs))},
		{protocol.KeyVote, 0, 2, controllerRole, onRaft(func(s *Server, ctx context.Context, l string, v int16, r *protocol.VoteRequest) (*protocol.VoteResponse, error) {
			return s.Raft.Vote(ctx, l, v, r)
		})},
		{protocol.KeyBeginQuorumEpoch, 0, 1, controllerRole, onRaft(func(s *Server, ctx context.Context, l string, v int16, r *protocol.BeginQuorumEpochRequest) (*protocol.BeginQuorumEpochResponse, error) {
			return s.Raft.BeginQuorumEpoch(ctx, l, v, r)
		})},
		{protocol.KeyEndQuorumEpoch, 0, 1, controllerRole, onRaft(func(s *Server, ctx context.Context, l string, v int16, r *protocol.EndQuorumEpochRequest) (*protocol.EndQuorumEpochResponse, error) {
			return s.Raft.EndQuorumEpoch(ctx, l, v, r)
		})},
		{protocol.KeyDescribeQuorum, 0, 2, controllerRole, onRaft(func(s *Server, ctx context.Context, _ string, v int16, r *protocol.DescribeQuorumRequest) (*protocol.DescribeQuorumResponse, error) {
			return s.Raft.DescribeQuorum(ctx, v, r)
		})},
		{protocol.KeyAlterPartition, 2, 3, controllerRole, onController(nil, known((*quorum.Controller).AlterPartition))},
		{protocol.KeyUpdateFeatures, 0, 2, controllerRole, onController(func(r *protocol.UpdateFeaturesRequest) int32 { return r.TimeoutMs }, known((*quorum.Controller).UpdateFeatures))},
		{protocol.KeyEnvelope, 0, 0, controllerRole, decoding(serveEnvelope)},
		{protocol.KeyFetchSnapshot, 0, 1, controllerRole, onRaft(func(s *Server, ctx context.Context, l string, v int16, r *protocol.FetchSnapshotRequest) (*protocol.FetchSnapshotResponse, error) {
			return s.Raft.FetchSnapshot(ctx, l, v, r)
		})},
		{protocol.KeyBrokerRegistration, 0, 4, controllerRole, onController(nil, known((*quorum.Controller).RegisterBroker))},
		{protocol.KeyBrokerHeartbeat, 0, 2, controllerRole, within(heartbeatLimit, plain((*quorum.Controller).BrokerHeartbeat))},
		{protocol.KeyUnregisterBroker, 0, 0, controllerRole, onController(nil, plain((*quorum.Controller).UnregisterBroker))},
		{protocol.KeyAllocateProducerIds, 0, 0, controllerRole, onController(nil, plain((*quorum.Controller).AllocateProducerIds))},
		{protocol.KeyControllerRegistration, 0, 0, controllerRole, onController(nil, plain((*quorum.Controller).RegisterController))},
		{protocol.KeyAssignReplicasToDirs, 0, 0, controllerRole, onController(nil, plain((*quorum.Controller).AssignReplicasToDirs))},
		{protocol.KeyUnregisterController, 0, 0, controllerRole, onController(nil, plain((*quorum.Controller).UnregisterController))},
	}
}

// forwardedEntries are the keys that a broker carries to the active controller as they are (K-187).
func forwardedEntries() []entry {
	return []entry{
		{protocol.KeyCreateTopics, 2, 7, brokerRole, forward},
		{protocol.KeyDeleteTopics, 1, 6, brokerRole, forward},
		{protocol.KeyCreatePartitions, 0, 3, brokerRole, forward},
		{protocol.KeyElectLeaders, 0, 2, brokerRole, forward},
		{protocol.KeyDescribeQuorum, 0, 2, brokerRole, forward},
		{protocol.KeyUpdateFeatures, 0, 2, brokerRole, forward},
		{protocol.KeyUnregisterBroker, 0, 0, brokerRole, forward},
		{protocol.KeyUnregisterController, 0, 0, brokerRole, forward},
	}
}
