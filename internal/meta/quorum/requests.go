package quorum

import (
	"context"
	"errors"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/controller"
	"samsa/internal/wire/protocol"
)

// Caller is who asks, and how.
type Caller = controller.Caller

// call queues an operation and waits for its answer. ctx bounds the wait: then the answer is
// REQUEST_TIMED_OUT, though the records may still be committed (K-130). The error is always nil; the
// answer carries what went wrong.
func call[R any](ctx context.Context, c *Controller, name string, decide func(*controller.Draft) R, failed func(error) R) (R, error) {
	done := make(chan R, 1)
	var answer R
	o := &operation{
		name: name, ctx: ctx,
		decide: func(d *controller.Draft) { answer = decide(d) },
		finish: func(err error) {
			if err != nil {
				answer = failed(err)
			}
			done <- answer
		},
	}
	if !c.push(func() { c.perform(o) }) {
		return failed(kerr.NotController.With("No controller appears to be active.")), nil
	}
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r, nil
	default:
		return failed(kerr.RequestTimedOut), nil
	}
}

// withDefaults returns a fresh response at its schema's defaults.
func withDefaults[T any, P interface {
	*T
	Default()
}](set func(*T)) *T {
	r := new(T)
	P(r).Default()
	set(r)
	return r
}

func text(err error) *string {
	s := err.Error()
	return &s
}

// CreateTopics: see controller.Controller.CreateTopics.
func (c *Controller) CreateTopics(ctx context.Context, caller Caller, r *protocol.CreateTopicsRequest) (*protocol.CreateTopicsResponse, error) {
	if len(r.Topics) == 0 {
		return withDefaults(func(*protocol.CreateTopicsResponse) {}), nil
	}
	return call(ctx, c, "CreateTopics", func(d *controller.Draft) *protocol.CreateTopicsResponse {
		return c.decide.CreateTopics(d, caller, r)
	}, func(err error) *protocol.CreateTopicsResponse { return controller.CreateTopicsError(r, err) })
}

// DeleteTopics: see controller.Controller.DeleteTopics.
func (c *Controller) DeleteTopics(ctx context.Context, caller Caller, r *protocol.DeleteTopicsRequest) (*protocol.DeleteTopicsResponse, error) {
	return call(ctx, c, "DeleteTopics", func(d *controller.Draft) *protocol.DeleteTopicsResponse {
		return c.decide.DeleteTopics(d, caller, r)
	}, func(err error) *protocol.DeleteTopicsResponse {
		if errors.Is(err, kerr.NotController) {
			if resp, ok := controller.DeleteTopicsUnknown(c.Image(), r); ok {
				return resp
			}
			err = kerr.NotController
			resp := controller.DeleteTopicsError(r, err)
			for i := range resp.Responses {
				resp.Responses[i].ErrorMessage = nil // T-152
			}
			return resp
		}
		return controller.DeleteTopicsError(r, err)
	})
}

// CreatePartitions: see controller.Controller.CreatePartitions.
func (c *Controller) CreatePartitions(ctx context.Context, caller Caller, r *protocol.CreatePartitionsRequest) (*protocol.CreatePartitionsResponse, error) {
	if len(r.Topics) == 0 {
		return withDefaults(func(*protocol.CreatePartitionsResponse) {}), nil
	}
	return call(ctx, c, "CreatePartitions", func(d *controller.Draft) *protocol.CreatePartitionsResponse {
		return c.decide.CreatePartitions(d, caller, r)
	}, func(err error) *protocol.CreatePartitionsResponse { return controller.CreatePartitionsError(r, err) })
}

// IncrementalAlterConfigs: see controller.Controller.IncrementalAlterConfigs.
func (c *Controller) IncrementalAlterConfigs(ctx context.Context, caller Caller, r *protocol.IncrementalAlterConfigsRequest) (*protocol.IncrementalAlterConfigsResponse, error) {
	return call(ctx, c, "IncrementalAlterConfigs", func(d *controller.Draft) *protocol.IncrementalAlterConfigsResponse {
		return c.decide.IncrementalAlterConfigs(d, caller, r)
	}, func(err error) *protocol.IncrementalAlterConfigsResponse {
		return controller.IncrementalAlterConfigsError(r, err)
	})
}

// AlterConfigs: see controller.Controller.AlterConfigs.
func (c *Controller) AlterConfigs(ctx context.Context, caller Caller, r *protocol.AlterConfigsRequest) (*protocol.AlterConfigsResponse, error) {
	return call(ctx, c, "AlterConfigs", func(d *controller.Draft) *protocol.AlterConfigsResponse {
		return c.decide.AlterConfigs(d, caller, r)
	}, func(err error) *protocol.AlterConfigsResponse { return controller.AlterConfigsError(r, err) })
}

// UpdateFeatures: see controller.Controller.UpdateFeatures.
func (c *Controller) UpdateFeatures(ctx context.Context, caller Caller, r *protocol.UpdateFeaturesRequest) (*protocol.UpdateFeaturesResponse, error) {
	return call(ctx, c, "UpdateFeatures", func(d *controller.Draft) *protocol.UpdateFeaturesResponse {
		return c.decide.UpdateFeatures(d, caller, r)
	}, func(err error) *protocol.UpdateFeaturesResponse {
		return withDefaults(func(m *protocol.UpdateFeaturesResponse) { m.ErrorCode, m.ErrorMessage = kerr.Code(err), text(err) })
	})
}

// AllocateProducerIds: see controller.Controller.AllocateProducerIds.
func (c *Controller) AllocateProducerIds(ctx context.Context, r *protocol.AllocateProducerIdsRequest) (*protocol.AllocateProducerIdsResponse, error) {
	return call(ctx, c, "AllocateProducerIds", func(d *controller.Draft) *protocol.AllocateProducerIdsResponse {
		return c.decide.AllocateProducerIds(d, r)
	}, func(err error) *protocol.AllocateProducerIdsResponse {
		return withDefaults(func(m *protocol.AllocateProducerIdsResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

// AlterPartition: see controller.Controller.AlterPartition.
func (c *Controller) AlterPartition(ctx context.Context, caller Caller, r *protocol.AlterPartitionRequest) (*protocol.AlterPartitionResponse, error) {
	if len(r.Topics) == 0 {
		return withDefaults(func(*protocol.AlterPartitionResponse) {}), nil // even by a standby (K-152)
	}
	return call(ctx, c, "AlterPartition", func(d *controller.Draft) *protocol.AlterPartitionResponse {
		return c.decide.AlterPartition(d, caller, r)
	}, func(err error) *protocol.AlterPartitionResponse {
		return withDefaults(func(m *protocol.AlterPartitionResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

// ElectLeaders: see controller.Controller.ElectLeaders.
func (c *Controller) ElectLeaders(ctx context.Context, r *protocol.ElectLeadersRequest) (*protocol.ElectLeadersResponse, error) {
	return call(ctx, c, "ElectLeaders", func(d *controller.Draft) *protocol.ElectLeadersResponse {
		return c.decide.ElectLeaders(d, r)
	}, func(err error) *protocol.ElectLeadersResponse {
		return withDefaults(func(m *protocol.ElectLeadersResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

// AssignReplicasToDirs: see controller.Controller.AssignReplicasToDirs.
func (c *Controller) AssignReplicasToDirs(ctx context.Context, r *protocol.AssignReplicasToDirsRequest) (*protocol.AssignReplicasToDirsResponse, error) {
	return call(ctx, c, "AssignReplicasToDirs", func(d *controller.Draft) *protocol.AssignReplicasToDirsResponse {
		return c.decide.AssignReplicasToDirs(d, r)
	}, func(err error) *protocol.AssignReplicasToDirsResponse {
		return withDefaults(func(m *protocol.AssignReplicasToDirsResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

// RegisterBroker: see controller.Controller.RegisterBroker.
func (c *Controller) RegisterBroker(ctx context.Context, caller Caller, r *protocol.BrokerRegistrationRequest) (*protocol.BrokerRegistrationResponse, error) {
	return call(ctx, c, "BrokerRegistration", func(d *controller.Draft) *protocol.BrokerRegistrationResponse {
		resp := c.decide.RegisterBroker(d, caller, r)
		if resp.ErrorCode == 0 {
			c.log.Info("broker registers", "broker", r.BrokerId, "incarnation", r.IncarnationId.String(), "brokerEpoch", resp.BrokerEpoch, "dirs", len(r.LogDirs))
		} else {
			c.log.Info("broker registration refused", "broker", r.BrokerId, "incarnation", r.IncarnationId.String(), "err", kerr.ForCode(resp.ErrorCode).Name)
		}
		return resp
	}, func(err error) *protocol.BrokerRegistrationResponse {
		return withDefaults(func(m *protocol.BrokerRegistrationResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

const heartbeatName = "BrokerHeartbeat"

// BrokerHeartbeat: see controller.Controller.BrokerHeartbeat. The session is kept even if the
// heartbeat then times out in the queue (K-140).
func (c *Controller) BrokerHeartbeat(ctx context.Context, r *protocol.BrokerHeartbeatRequest) (*protocol.BrokerHeartbeatResponse, error) {
	if c.Active() {
		c.mu.Lock()
		c.contacts[model.NodeID(r.BrokerId)] = contact{epoch: r.BrokerEpoch, ms: c.nowMs()}
		c.mu.Unlock()
	}
	return call(ctx, c, heartbeatName, func(d *controller.Draft) *protocol.BrokerHeartbeatResponse {
		id := model.NodeID(r.BrokerId)
		was, _ := d.Image().Brokers().ByID(id)
		resp := c.decide.BrokerHeartbeat(d, r)
		if now, ok := d.Image().Brokers().ByID(id); ok && was != nil && was != now {
			c.log.Info("broker changes", "broker", id, "fenced", now.Fenced, "controlledShutdown", now.InControlledShutdown,
				"dirs", len(now.Directories), "cordoned", len(now.Cordoned))
			if was.Fenced && !now.Fenced {
				c.tasks.fence = c.opts.Now() // it has a session now
			}
		}
		return resp
	}, func(err error) *protocol.BrokerHeartbeatResponse {
		return withDefaults(func(m *protocol.BrokerHeartbeatResponse) { m.ErrorCode = kerr.Code(err) })
	})
}

// UnregisterBroker: see controller.Controller.UnregisterBroker.
func (c *Controller) UnregisterBroker(ctx context.Context, r *protocol.UnregisterBrokerRequest) (*protocol.UnregisterBrokerResponse, error) {
	return call(ctx, c, "UnregisterBroker", func(d *controller.Draft) *protocol.UnregisterBrokerResponse {
		return c.decide.UnregisterBroker(d, r)
	}, func(err error) *protocol.UnregisterBrokerResponse {
		return withDefaults(func(m *protocol.UnregisterBrokerResponse) { m.ErrorCode, m.ErrorMessage = kerr.Code(err), text(err) })
	})
}

// RegisterController: see controller.Controller.RegisterController.
func (c *Controller) RegisterController(ctx context.Context, r *protocol.ControllerRegistrationRequest) (*protocol.ControllerRegistrationResponse, error) {
	return call(ctx, c, "ControllerRegistration", func(d *controller.Draft) *protocol.ControllerRegistrationResponse {
		return c.decide.RegisterController(d, r)
	}, func(err error) *protocol.ControllerRegistrationResponse {
		return withDefaults(func(m *protocol.ControllerRegistrationResponse) {
			m.ErrorCode, m.ErrorMessage = kerr.Code(err), text(err)
		})
	})
}

// UnregisterController: see controller.Controller.UnregisterController.
func (c *Controller) UnregisterController(ctx context.Context, r *protocol.UnregisterControllerRequest) (*protocol.UnregisterControllerResponse, error) {
	return call(ctx, c, "UnregisterController", func(d *controller.Draft) *protocol.UnregisterControllerResponse {
		return c.decide.UnregisterController(d, r)
	}, func(err error) *protocol.UnregisterControllerResponse {
		return withDefaults(func(m *protocol.UnregisterControllerResponse) {
			m.ErrorCode, m.ErrorMessage = kerr.Code(err), text(err)
		})
	})
}
