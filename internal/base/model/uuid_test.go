package model

import (
	"encoding/hex"
	"strings"
	"testing"
)

// T-01, T-02: big endian on the wire, 22 characters as text.
func TestUUIDTextVector(t *testing.T) {
	var u UUID
	hex.Decode(u[:], []byte("46bdb63f9e8d4a38bf7bee4eb2a794e4"))
	if got, want := u.String(), "Rr22P56NSji_e-5OsqeU5A"; got != want {
		t.Fatalf("text of the vector: %s, want %s", got, want)
	}
	if got, want := UUID(MetadataTopicID).String(), strings.Repeat("A", 21)+"Q"; got != want {
		t.Fatalf("metadata topic id: %s, want %s", got, want)
	}
}

// T-03, J-01.
func TestParseUUID(t *testing.T) {
	want, err := ParseUUID("Rr22P56NSji_e-5OsqeU5A")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"padded":         "Rr22P56NSji_e-5OsqeU5A==",
		"stray_low_bits": "Rr22P56NSji_e-5OsqeU5B",
	} {
		if got, err := ParseUUID(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"empty":             "",
		"21_characters":     "Rr22P56NSji_e-5OsqeU5",
		"25_characters":     "Rr22P56NSji_e-5OsqeU5A===",
		"26_characters":     "Rr22P56NSji_e-5OsqeU5AAAAA",
		"standard_alphabet": "Rr22P56NSji+e/5OsqeU5A",
		"line_break":        "Rr22P56NSji_e-5OsqeU5A\n",
	} {
		if got, err := ParseUUID(text); err == nil {
			t.Errorf("%s: accepted as %v", name, got)
		}
	}
}

// J-02, J-03: the reserved range compares the low half as a signed number.
func TestReservedDirectoryIDs(t *testing.T) {
	id := func(b ...byte) DirectoryID {
		var d DirectoryID
		copy(d[16-len(b):], b)
		return d
	}
	minusOne := id(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	for _, d := range []DirectoryID{DirMigrating, DirUnassigned, DirLost, id(99), minusOne} {
		if !d.Reserved() {
			t.Errorf("%v is not reserved", d)
		}
	}
	if id(100).Reserved() || (DirectoryID{1}).Reserved() {
		t.Error("an ordinary id is reserved")
	}
}

// T-04.
func TestRandomUUID(t *testing.T) {
	seen := map[UUID]bool{}
	for range 3000 {
		u := RandomUUID()
		if u[6]>>4 != 4 || u[8]>>6 != 2 || strings.Contains(u.String(), "-") || seen[u] {
			t.Fatalf("id %v (%x) is no fresh version 4 id without a dash", u, u[:])
		}
		seen[u] = true
	}
}
