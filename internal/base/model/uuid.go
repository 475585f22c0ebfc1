package model

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// UUID is Kafka's 128-bit identifier, big endian as on the wire.
// Its text form is 22 characters of URL-safe base64 without padding (T-01).
type UUID [16]byte

// TopicID names a topic for its whole life: a topic deleted and created again
// has another one (KIP-516).
type TopicID UUID

// DirectoryID names one log directory of one broker (KIP-858).
type DirectoryID UUID

// Reserved directory ids (J-02).
var (
	// DirMigrating: the replica is in some directory nobody has named yet.
	DirMigrating = DirectoryID{}
	// DirUnassigned: the replica has not been placed yet.
	DirUnassigned = DirectoryID{15: 1}
	// DirLost: the replica is in a failed directory that cannot be named.
	DirLost = DirectoryID{15: 2}
)

// MetadataTopicID is the fixed id of __cluster_metadata.
var MetadataTopicID = TopicID{15: 1}

// ReservedDirectoryIDs is how many ids, counted from zero, are never given to a directory (J-02).
const ReservedDirectoryIDs = 100

func (u UUID) IsZero() bool        { return u == UUID{} }
func (t TopicID) IsZero() bool     { return t == TopicID{} }
func (d DirectoryID) IsZero() bool { return d == DirectoryID{} }

func (u UUID) String() string        { return base64.RawURLEncoding.EncodeToString(u[:]) }
func (t TopicID) String() string     { return UUID(t).String() }
func (d DirectoryID) String() string { return UUID(d).String() }

// Reserved reports whether d has, or may get, a special meaning and so never names a
// directory: high half zero and low half, read as a signed number, below 100 (J-03).
func (d DirectoryID) Reserved() bool {
	return binary.BigEndian.Uint64(d[:8]) == 0 && int64(binary.BigEndian.Uint64(d[8:])) < ReservedDirectoryIDs
}

// ParseUUID reads the 22-character form, with or without padding. Stray low bits of the last
// character are ignored, so two texts can name one id: compare ids, never texts (T-03).
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) > 24 {
		return u, fmt.Errorf("id %.40q has %d characters, more than the 24 of a base64 uuid", s, len(s))
	}
	for len(s) > 0 && s[len(s)-1] == '=' {
		s = s[:len(s)-1]
	}
	if strings.ContainsAny(s, "\r\n") { // which the decoder below would skip
		return u, fmt.Errorf("id %q holds a line break", s)
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return u, fmt.Errorf("id %q is not URL-safe base64: %w", s, err)
	}
	if len(b) != 16 {
		return u, fmt.Errorf("id %q decodes to %d bytes, not the 16 of a uuid", s, len(b))
	}
	copy(u[:], b)
	return u, nil
}

// RandomUUID draws a version 4 id: never a reserved one, and never one whose text holds a
// dash, which a command line or a file name could misread (T-04, J-04).
func RandomUUID() UUID {
	for {
		var u UUID
		if _, err := rand.Read(u[:]); err != nil {
			panic("the operating system gives no random bytes: " + err.Error())
		}
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if DirectoryID(u).Reserved() || strings.Contains(u.String(), "-") {
			continue
		}
		return u
	}
}
