package api

import (
	"context"
	"log/slog"
	"time"

	"samsa/internal/base/config"
	"samsa/internal/base/metric"
	"samsa/internal/base/model"
	"samsa/internal/coord/producerids"
	"samsa/internal/coord/runtime"
	"samsa/internal/meta/image"
	"samsa/internal/meta/quorum"
	"samsa/internal/raft/node"
	"samsa/internal/replica/fetchsession"
	"samsa/internal/replica/manager"
)

// Options are what the APIs stand on. On a node without the broker role Replicas, Sessions and
// Groups are nil; without the controller role Quorum is.
type Options struct {
	ClusterID string
	NodeID    model.NodeID
	Config    func() *config.Node // as it is now, dynamic settings included
	Log       *slog.Logger
	Metrics   *metric.Registry // nil: not shown
	LogLevel  *slog.LevelVar   // of Log; nil: it cannot be changed
	Now       func() time.Time

	// Image is the newest metadata image this node has applied.
	Image func() *image.Image
	// Settle waits until Image holds all metadata this node knows to be committed, and its replicas follow it.
	Settle func(context.Context) error
	// KRaftVersion is the finalized level of kraft.version, which no image holds.
	KRaftVersion func() int16

	// ControllerChannel forwards to the active controller; broker role only.
	ControllerChannel ControllerChannel

	// Raft is this node's replica of the metadata log; Quorum the controller, nil without that role.
	Raft   *node.Node
	Quorum *quorum.Controller

	Replicas *manager.Manager
	Sessions *fetchsession.Cache
	// Groups coordinates consumer groups; ProducerIDs hands out ids to idempotent producers.
	Groups      *runtime.Groups
	ProducerIDs *producerids.IDs
}

// Server serves the APIs of one node, on its broker listeners, its controller listeners or both.
type Server struct {
	Options
	state
}

// New makes a server; Broker and Controller give its handlers.
func New(o Options) *Server {
	s := &Server{Options: o}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.metrics.init(o.Metrics)
	s.tables = map[role]*table{brokerRole: newTable(entries(), brokerRole), controllerRole: newTable(entries(), controllerRole)}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}
