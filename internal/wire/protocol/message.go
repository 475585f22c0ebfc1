package protocol

// Message is what every generated top-level struct can do.
type Message interface {
	// Default resets the message to the schema's defaults.
	Default()
	// Append writes the message at version behind dst and returns the extended slice; on an
	// error, dst as it was.
	Append(dst []byte, version int16) ([]byte, error)
	// Read replaces the message by the one at the head of src, and returns what follows it.
	// Byte slices of the message alias src.
	Read(src []byte, version int16) (rest []byte, err error)
}

// Request is a message a client sends; ApiKey is its API key.
type Request interface {
	Message
	ApiKey() int16
}

// Response is the answer to the request of the same key.
type Response interface {
	Message
	ApiKey() int16
}

// Record is a record of the metadata log, or a key or value of a coordinator's topic;
// RecordKey is the number that names its type there.
type Record interface {
	Message
	RecordKey() int16
}

// RawTag is a tagged field this version of the schemas does not know. Data aliases what was read.
type RawTag struct {
	Tag  uint32
	Data []byte
}

// Make gives a T with the schema's defaults: protocol.Make[protocol.PartitionRecord]().
func Make[T any, P interface {
	*T
	Default()
}]() T {
	var m T
	P(&m).Default()
	return m
}
