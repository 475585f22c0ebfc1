package quorum

import (
	"context"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// Backoff of the registration (K-145).
const (
	registerBackoffMin = 100 * time.Millisecond
	registerBackoffMax = 120 * time.Second
	registerTimeout    = 5 * time.Second
)

// registrar tells the active controller how this one is reached, whenever the metadata does not say so.
func (c *Controller) registrar() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	backoff := registerBackoffMin
	for {
		changed := c.Changed()
		if c.unregistered(c.Image()) && (c.Active() || c.opts.Forward != nil) {
			if err := c.register(ctx); err != nil {
				c.log.Debug("controller registration failed", "err", err, "retryIn", backoff)
				if !c.sleep(backoff) {
					return
				}
				backoff = min(2*backoff, registerBackoffMax)
				continue
			}
			backoff = registerBackoffMin
		}
		select {
		case <-changed:
		case <-c.stop:
			return
		}
	}
}

func (c *Controller) unregistered(img *image.Image) bool {
	if img.Features().MetadataVersion() < image.MetadataVersionCtrlReg {
		return false
	}
	r, ok := img.Controllers().ByID(c.opts.NodeID)
	return !ok || r.Incarnation != model.UUID(c.opts.Registration.IncarnationId)
}

func (c *Controller) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	var resp *protocol.ControllerRegistrationResponse
	var err error
	if c.Active() || c.opts.Forward == nil {
		resp, err = c.RegisterController(ctx, c.opts.Registration)
	} else {
		resp, err = c.opts.Forward(ctx, c.opts.Registration)
	}
	if err != nil {
		return err
	}
	if e := kerr.ForCode(resp.ErrorCode); e != nil {
		return e
	}
	c.log.Info("controller registered", "incarnation", c.opts.Registration.IncarnationId.String())
	return nil
}

// sleep waits; false if the controller closes.
func (c *Controller) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.stop:
		return false
	}
}
