package protocol

type api struct {
	name      string
	listeners uint8 // 1 broker, 2 controller
	min, max  int16 // the schema's range
	unstable  int16 // the version that is not stable yet, -1: none
	reqFlex   int16 // first flexible version
	respFlex  int16
	newReq    func() Request
	newResp   func() Response
}

// record is an entry of the tables of messages that are not RPCs.
type record struct {
	name     string
	min, max int16
	make     func() Message
}

func apiOf(key int16) *api {
	if key < 0 || int(key) >= len(apis) || apis[key].newReq == nil {
		return nil
	}
	return &apis[key]
}

// Keys lists the API keys in order.
func Keys() []int16 {
	var keys []int16
	for k := range apis {
		if apis[k].newReq != nil {
			keys = append(keys, int16(k))
		}
	}
	return keys
}

// NewRequest is an empty request for key, nil for a key that does not exist.
func NewRequest(key int16) Request {
	if a := apiOf(key); a != nil {
		return a.newReq()
	}
	return nil
}

// NewResponse is an empty response for key, nil for a key that does not exist.
func NewResponse(key int16) Response {
	if a := apiOf(key); a != nil {
		return a.newResp()
	}
	return nil
}

// ApiName is Kafka's name of the key, without Request or Response; "" for a key that does not exist.
func ApiName(key int16) string {
	if a := apiOf(key); a != nil {
		return a.name
	}
	return ""
}

// Versions is the range of stable versions of key. What a node advertises is its own table:
// Produce is advertised from 0 on, for one.
func Versions(key int16) (min, max int16, ok bool) {
	a := apiOf(key)
	if a == nil {
		return 0, -1, false
	}
	if a.unstable == a.max {
		return a.min, a.max - 1, true
	}
	return a.min, a.max, true
}

// SchemaVersions is the range of key with the version that is not stable yet.
func SchemaVersions(key int16) (min, max int16, ok bool) {
	if a := apiOf(key); a != nil {
		return a.min, a.max, true
	}
	return 0, -1, false
}

// OnBroker and OnController say on which listeners Kafka's schema puts the key.
func OnBroker(key int16) bool {
	a := apiOf(key)
	return a != nil && a.listeners&1 != 0
}

// OnController: see OnBroker.
func OnController(key int16) bool {
	a := apiOf(key)
	return a != nil && a.listeners&2 != 0
}

// RequestHeaderVersion is 2 for flexible versions of the request, else 1.
func RequestHeaderVersion(key, version int16) int16 {
	if a := apiOf(key); a != nil && version >= a.reqFlex {
		return 2
	}
	return 1
}

// ResponseHeaderVersion is 1 for flexible versions of the response, else 0; and always 0 for
// ApiVersions, whose client does not know yet what the server speaks.
func ResponseHeaderVersion(key, version int16) int16 {
	if a := apiOf(key); a != nil && version >= a.respFlex && key != KeyApiVersions {
		return 1
	}
	return 0
}

func (t record) new() Message {
	if t.make == nil {
		return nil
	}
	return t.make()
}

// NewMetadataRecord is an empty metadata record, nil for a key that does not exist.
func NewMetadataRecord(key int16) Record {
	m, _ := metadataRecords[key].new().(Record)
	return m
}

// MetadataRecordName is Kafka's name of the record, "" for a key that does not exist.
func MetadataRecordName(key int16) string { return metadataRecords[key].name }

// MetadataRecordVersions is the range of versions of a metadata record.
func MetadataRecordVersions(key int16) (min, max int16, ok bool) {
	t, ok := metadataRecords[key]
	return t.min, t.max, ok
}

// NewGroupKey and its kin give an empty key or value of a coordinator's record by the type in
// the first two bytes of its key; nil for a type that does not exist.
func NewGroupKey(recordType int16) Message   { return groupKeys[recordType].new() }
func NewGroupValue(recordType int16) Message { return groupValues[recordType].new() }

// NewTransactionKey: see NewGroupKey.
func NewTransactionKey(recordType int16) Message   { return txnKeys[recordType].new() }
func NewTransactionValue(recordType int16) Message { return txnValues[recordType].new() }

// NewShareKey: see NewGroupKey.
func NewShareKey(recordType int16) Message   { return shareKeys[recordType].new() }
func NewShareValue(recordType int16) Message { return shareValues[recordType].new() }

// NewRemoteLogRecord is an empty record of the remote log metadata topic, nil for a key that does not exist.
func NewRemoteLogRecord(key int16) Record {
	m, _ := remoteRecords[key].new().(Record)
	return m
}

// NewNamed is an empty header, control record, consumer protocol blob or state file by its
// schema's name, nil for a name that does not exist.
func NewNamed(name string) Message { return standalone[name].new() }
