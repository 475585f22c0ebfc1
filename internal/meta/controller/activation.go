package controller

import (
	"strconv"

	"samsa/internal/meta/image"
	"samsa/internal/wire/protocol"
)

// bootstrapName and failoverReason are the words Kafka writes (K-107).
const (
	bootstrapName  = "Bootstrap records"
	failoverReason = "Controller failover"
)

// ActivationRecords are what a new active controller writes first (K-107, K-125): on metadata that
// is still empty the bootstrap records, in a transaction from metadata.version 13 on; and before
// them, or alone, the end of a transaction that the last controller left open.
//
//	openTransaction  a BeginTransactionRecord is in the log without its end
//
// All of it must go into one batch.
func (c *Controller) ActivationRecords(d *Draft, bootstrap []image.Versioned, openTransaction bool) {
	d.atomic = true
	abort := func() {
		reason := failoverReason
		d.add(&protocol.AbortTransactionRecord{Reason: &reason}, 0)
	}
	if d.base.Features().MetadataVersion() != 0 {
		if openTransaction {
			abort()
		}
		return
	}
	if len(bootstrap) == 0 {
		// A lost file costs every feature but the format (K-106), as in Kafka.
		bootstrap = []image.Versioned{{Record: &protocol.FeatureLevelRecord{Name: image.FeatureMetadataVersion, FeatureLevel: int16(image.MetadataVersionLatest)}}}
	}
	var mv image.MetadataVersion
	elr := false
	for _, v := range bootstrap {
		if f, ok := v.Record.(*protocol.FeatureLevelRecord); ok {
			if f.Name == image.FeatureMetadataVersion {
				mv = image.MetadataVersion(f.FeatureLevel)
			}
			elr = elr || f.Name == image.FeatureELR && f.FeatureLevel > 0
		}
	}
	if openTransaction {
		abort()
	}
	if mv.Transactions() {
		name := bootstrapName
		d.add(&protocol.BeginTransactionRecord{Name: &name}, 0)
	}
	d.append(bootstrap...)
	if elr {
		value := strconv.Itoa(int(c.static.Topic(nil).MinInSyncReplicas))
		d.add(&protocol.ConfigRecord{ResourceType: image.ResourceBroker, Name: minISRConfig, Value: &value}, 0)
	}
	if mv.Transactions() {
		d.add(new(protocol.EndTransactionRecord), 0)
	}
}

// NoOp adds the record that keeps offsets moving on an idle cluster (K-126, K-127).
func (c *Controller) NoOp(d *Draft) { d.add(new(protocol.NoOpRecord), 0) }
