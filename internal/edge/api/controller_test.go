package api

import (
	"testing"
	"time"

	"samsa/internal/base/config"
)

// K-130: a heartbeat waits half of broker.heartbeat.interval.ms for the controller, as it is set now.
func TestHeartbeatLimit(t *testing.T) {
	cfg := &config.Node{BrokerHeartbeatInterval: 2 * time.Second}
	s := &Server{Options: Options{Config: func() *config.Node { return cfg }}}
	if got := heartbeatLimit(s, nil); got != time.Second {
		t.Errorf("limit %v", got)
	}
	cfg = &config.Node{BrokerHeartbeatInterval: 300 * time.Millisecond}
	if got := heartbeatLimit(s, nil); got != 150*time.Millisecond {
		t.Errorf("limit %v after a change", got)
	}
}
