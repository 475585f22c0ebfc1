// Package lifecycle is a broker's life as the controller sees it: registration, heartbeats, fencing, failed
// directories and controlled shutdown (KIP-631, KIP-858).
//
// Kind: driver. One goroutine owns all state ("the loop"); it sleeps until the next heartbeat or until told
// something. The decisions (what to send next and when) are in the pure machine of machine.go.
package lifecycle

import (
	"context"
	"log/slog"

	"samsa/internal/base/model"
)

// State is the BrokerState of K-178.
type State int32

const (
	NotRunning                State = 0
	Starting                  State = 1
	Recovery                  State = 2
	Running                   State = 3
	PendingControlledShutdown State = 6
	ShuttingDown              State = 7
)

// Options is what a Lifecycle needs.
type Options struct {
	NodeID model.NodeID
	Log    *slog.Logger
}

// Lifecycle is one process's life as a broker; a new incarnation id each.
type Lifecycle struct{}

// Start begins to register. It returns at once.
func Start(o Options) *Lifecycle { panic("pending") }

// Epoch is the broker epoch given at registration, -1 before.
func (l *Lifecycle) Epoch() int64 { panic("pending") }

// State is the state of K-178.
func (l *Lifecycle) State() State { panic("pending") }

// WaitCaughtUp returns when the controller says that this broker has replayed its own registration. It fails when
// ctx ends or registration took longer than initial.broker.registration.timeout.ms.
func (l *Lifecycle) WaitCaughtUp(ctx context.Context) error { panic("pending") }

// Ready says that the first image is applied and the logs are up: from now on heartbeats ask to be unfenced.
func (l *Lifecycle) Ready() { panic("pending") }

// WaitUnfenced returns when the controller has unfenced this broker.
func (l *Lifecycle) WaitUnfenced(ctx context.Context) error { panic("pending") }

// DirFailed reports a failed directory in the next heartbeat, sent at once.
func (l *Lifecycle) DirFailed(id model.DirectoryID) { panic("pending") }

// Reregister sends the registration again with the same incarnation (K-117, J-51).
func (l *Lifecycle) Reregister() { panic("pending") }

// Fatal delivers the reason why this broker has to stop: registration not accepted in time, or a failed
// directory that no controller heard of within log.dir.failure.timeout.ms.
func (l *Lifecycle) Fatal() <-chan error { panic("pending") }

// ControlledShutdown asks the controller to move leaderships away and returns when it agrees, when ctx ends, or
// when nobody can be asked (see K-183 and the package doc). The broker keeps serving until then.
func (l *Lifecycle) ControlledShutdown(ctx context.Context) error { panic("pending") }

// Close ends the loop.
func (l *Lifecycle) Close() { panic("pending") }
