package image

import (
	"samsa/internal/base/model"
)

// Provenance says which part of the metadata log an image holds.
type Provenance struct {
	Offset      int64             // the last offset contained; -1 in the empty image
	Epoch       model.LeaderEpoch // the leader epoch of that offset
	TimestampMs int64             // the append time of the last batch
	// BatchAligned is false when the image ends inside a batch, before a metadata transaction
	// that the batch begins: such an image is no snapshot point (K-67).
	BatchAligned bool
}

// Image is the metadata up to one offset. It is immutable and safe for use by any goroutine.
type Image struct {
	prov        Provenance
	features    Features
	brokers     Brokers
	controllers Controllers
	topics      Topics
	configs     Configs
	quotas      ClientQuotas
	producerIDs int64 // the next id to hand out; -1 before the first
	acls        ACLs
	scram       Scram
	tokens      Tokens
}

// Empty is the image before the first record.
func Empty() *Image {
	return &Image{
		prov:        Provenance{Offset: -1, Epoch: model.NoEpoch, TimestampMs: -1, BatchAligned: true},
		features:    Features{changedAt: -1},
		brokers:     newBrokers(),
		controllers: newControllers(),
		topics:      newTopics(),
		configs:     newConfigs(),
		quotas:      newClientQuotas(),
		producerIDs: -1,
		acls:        newACLs(),
		scram:       newScram(),
		tokens:      newTokens(),
	}
}

// Provenance says where the image ends.
func (i *Image) Provenance() Provenance { return i.prov }

// Offset is the last offset of the metadata log the image holds; -1 if none.
func (i *Image) Offset() int64 { return i.prov.Offset }

// Epoch is the metadata leader epoch of that offset.
func (i *Image) Epoch() model.LeaderEpoch { return i.prov.Epoch }

// The kinds of metadata. Each is a small read-only value.
func (i *Image) Features() Features         { return i.features }
func (i *Image) Brokers() Brokers           { return i.brokers }
func (i *Image) Controllers() Controllers   { return i.controllers }
func (i *Image) Topics() Topics             { return i.topics }
func (i *Image) AllConfigs() Configs        { return i.configs }
func (i *Image) ClientQuotas() ClientQuotas { return i.quotas }
func (i *Image) ACLs() ACLs                 { return i.acls }
func (i *Image) Scram() Scram               { return i.scram }
func (i *Image) Tokens() Tokens             { return i.tokens }

// Configs returns the dynamic configs of one resource; nil if it has none. Read only.
func (i *Image) Configs(r ConfigResource) map[string]string { return i.configs.Of(r) }

// TopicConfigs returns the configs set on a topic; nil if it has none. Read only.
func (i *Image) TopicConfigs(name string) map[string]string {
	return i.configs.Of(ConfigResource{ResourceTopic, name})
}

// ProducerIDs is the next producer id of the cluster (the start of the next block), -1 before the first allocation.
func (i *Image) ProducerIDs() int64 { return i.producerIDs }

// at returns the image with another provenance and the same content.
func (i *Image) at(p Provenance) *Image {
	c := *i
	c.prov = p
	return &c
}

// At returns the image as standing at p: the content is the same, for instance after a batch
// that held only control records.
func (i *Image) At(p Provenance) *Image { return i.at(p) }
