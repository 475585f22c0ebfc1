package logdir

import (
	"encoding/json"
	"strconv"
)

// CleanShutdownFile is the marker a clean stop leaves in each log directory: its logs need
// no recovery (D-45). Its presence alone says so; what it holds is the broker epoch.
const CleanShutdownFile = ".kafka_cleanshutdown"

// NoBrokerEpoch stands for "the last stop was not clean, or its epoch is not known" (J-43).
const NoBrokerEpoch int64 = -1

// maxMarkerBytes bounds what is read of a marker; Kafka's own has at most 50.
const maxMarkerBytes = 4 << 10

// appendCleanMarker writes the JSON object without a line end, as Kafka does.
func appendCleanMarker(dst []byte, brokerEpoch int64) []byte {
	dst = append(dst, `{"version":0,"brokerEpoch":`...)
	dst = strconv.AppendInt(dst, brokerEpoch, 10)
	return append(dst, '}')
}

// parseCleanMarker reads the broker epoch, or NoBrokerEpoch where the content makes no sense:
// an old or damaged marker is still a marker.
func parseCleanMarker(text []byte) int64 {
	var content struct {
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if json.Unmarshal(text, &content) != nil || content.BrokerEpoch == nil {
		return NoBrokerEpoch
	}
	return *content.BrokerEpoch
}
