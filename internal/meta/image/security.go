package image

import (
	"bytes"
	"cmp"
	"iter"
	"strings"

	"samsa/internal/base/model"
	"samsa/internal/base/pmap"
)

// ACL is one access control entry. The bytes of its enums are those of the client protocol.
type ACL struct {
	ID             model.UUID
	ResourceType   int8
	ResourceName   string
	PatternType    int8
	Principal      string
	Host           string
	Operation      int8
	PermissionType int8
}

// ACLs are all access control entries.
type ACLs struct {
	m pmap.Map[model.UUID, *ACL]
}

func newACLs() ACLs {
	return ACLs{pmap.New[model.UUID, *ACL](func(a, b model.UUID) int { return bytes.Compare(a[:], b[:]) })}
}

// ByID finds an entry.
func (a ACLs) ByID(id model.UUID) (*ACL, bool) { return a.m.Get(id) }

// All walks the entries by id.
func (a ACLs) All() iter.Seq[*ACL] { return a.m.Values() }

// Len is the number of entries.
func (a ACLs) Len() int { return a.m.Len() }

// The SCRAM mechanisms (K-82).
const (
	ScramSHA256 int8 = 1
	ScramSHA512 int8 = 2
)

// ScramUser is a user's credential under one mechanism.
type ScramUser struct {
	Mechanism int8
	Name      string
}

// ScramCredential is what a server keeps of a password. It never appears in a log or error text.
type ScramCredential struct {
	Salt, StoredKey, ServerKey []byte
	Iterations                 int32
}

// Scram are the SCRAM credentials.
type Scram struct {
	m pmap.Map[ScramUser, *ScramCredential]
}

func newScram() Scram {
	return Scram{pmap.New[ScramUser, *ScramCredential](func(a, b ScramUser) int {
		return cmp.Or(cmp.Compare(a.Mechanism, b.Mechanism), strings.Compare(a.Name, b.Name))
	})}
}

// Of finds the credential of a user.
func (s Scram) Of(mechanism int8, user string) (*ScramCredential, bool) {
	return s.m.Get(ScramUser{mechanism, user})
}

// All walks the credentials by mechanism and user.
func (s Scram) All() iter.Seq2[ScramUser, *ScramCredential] { return s.m.All() }

// Len is the number of credentials.
func (s Scram) Len() int { return s.m.Len() }

// Token is a delegation token, without its HMAC, which follows from the cluster's secret.
type Token struct {
	ID          string
	Owner       string // Type:name
	Requester   string
	Renewers    []string
	IssuedMs    int64
	MaxMs       int64
	ExpiresAtMs int64
}

// Tokens are the delegation tokens.
type Tokens struct{ m pmap.Map[string, *Token] }

func newTokens() Tokens { return Tokens{pmap.New[string, *Token](strings.Compare)} }

// ByID finds a token.
func (t Tokens) ByID(id string) (*Token, bool) { return t.m.Get(id) }

// All walks the tokens by id.
func (t Tokens) All() iter.Seq[*Token] { return t.m.Values() }

// Len is the number of tokens.
func (t Tokens) Len() int { return t.m.Len() }
