package protocol

import (
	"encoding/binary"
	"fmt"
)

// ReadRequestHeader reads the header at the head of a frame and returns what follows it:
//
//	api key int16 | api version int16 | correlation id int32 | client id nullable string, int16 length | v2: tags
//
// Header version 2 goes with flexible versions of the request. A key that does not exist leaves
// only the first eight bytes read, and headerVersion 0, so that the caller can say which key it was.
func ReadRequestHeader(src []byte) (h RequestHeader, headerVersion int16, rest []byte, err error) {
	if len(src) < 8 {
		return h, 0, src, fmt.Errorf("%w: request header of %d bytes", ErrMalformed, len(src))
	}
	key, version := int16(binary.BigEndian.Uint16(src)), int16(binary.BigEndian.Uint16(src[2:]))
	if apiOf(key) == nil {
		h.RequestApiKey, h.RequestApiVersion = key, version
		h.CorrelationId = int32(binary.BigEndian.Uint32(src[4:]))
		return h, 0, src[8:], nil
	}
	headerVersion = RequestHeaderVersion(key, version)
	rest, err = h.Read(src, headerVersion)
	return h, headerVersion, rest, err
}

// AppendResponseHeader writes the header of the answer to a request of key and version.
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if ResponseHeaderVersion(key, version) > 0 {
		dst = append(dst, 0) // no tags
	}
	return dst
}

// SkipTags passes the tagged section at the head of src and returns what follows it.
func SkipTags(src []byte) (rest []byte, err error) {
	r := newReader(src)
	r.skipTags()
	return r.done(src, "tagged section", 0)
}
