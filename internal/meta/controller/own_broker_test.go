package controller

import (
	"testing"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// A node that was killed and started again is admitted at once when broker and controller share the
// process: the session of the one before is known to be over. Anybody else with that id waits for the
// session to end (K-132, K-181).
func TestOwnBrokerNeedNotWaitForItsForerunner(t *testing.T) {
	s := newScene(t, image.MetadataVersionLatest, nil, nil)
	register := func(incarnation string) int16 {
		r := protocol.Make[protocol.BrokerRegistrationRequest]()
		r.BrokerId, r.ClusterId, r.IncarnationId = 1, "cluster", s.id(incarnation)
		r.LogDirs = []model.UUID{s.id("d1")}
		r.Features = []protocol.BrokerRegistrationRequestFeature{{Name: image.FeatureMetadataVersion, MinSupportedVersion: 7, MaxSupportedVersion: 33}}
		var resp *protocol.BrokerRegistrationResponse
		s.decide(func(d *Draft) {
			resp = s.c.RegisterBroker(d, Caller{Version: 4}, &r)
			if incarnation == "killed" { // its first heartbeat begins its session
				s.c.beats.contact(1, resp.BrokerEpoch, d.nowMs)
			}
		})
		return resp.ErrorCode
	}
	if code := register("silent"); code != 0 {
		t.Fatalf("first registration: %d", code)
	}
	if code := register("killed"); code != 0 {
		t.Fatalf("registration after one that never sent a heartbeat: %d", code)
	}
	if code := register("stranger"); code != kerr.DuplicateBrokerRegistration.Code {
		t.Errorf("a stranger within the session: %d, want %d", code, kerr.DuplicateBrokerRegistration.Code)
	}
	s.c.ownIncarnation = s.id("again")
	if code := register("stranger"); code != kerr.DuplicateBrokerRegistration.Code {
		t.Errorf("a stranger to a controller with a broker of its own: %d, want %d", code, kerr.DuplicateBrokerRegistration.Code)
	}
	if code := register("again"); code != 0 {
		t.Errorf("the broker of this process: %d", code)
	}
}
