package storagetool

import (
	"samsa/internal/base/config"
)

// FromConfig fills in what the configuration of a node says.
func (o *Options) FromConfig(n *config.Node) {
	o.NodeID = n.NodeID
	o.Controller = n.Controller
	o.Dirs = n.LogDirs
	o.MetadataDir = n.MetadataLogDir
	o.StaticVoters = len(n.Quorum.Voters) > 0
	o.UnstableFeatures = n.UnstableFeatureVersions
	if len(n.ControllerListenerNames) > 0 {
		o.ControllerListener = n.ControllerListenerNames[0]
	}
	if len(n.AdvertisedControllerListeners) > 0 {
		l := n.AdvertisedControllerListeners[0]
		o.AdvertisedHost, o.AdvertisedPort = l.Host, l.Port
	}
}
