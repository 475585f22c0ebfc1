package storagetool

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"samsa/internal/wire/protocol"
)

// scramMechanism is one of the two mechanisms Kafka stores (KIP-554).
type scramMechanism struct {
	name string
	java string // as it stands in messages
	code int8
	hash func() hash.Hash
}

var scramMechanisms = []scramMechanism{
	{"SCRAM-SHA-256", "SCRAM_SHA_256", 1, sha256.New},
	{"SCRAM-SHA-512", "SCRAM_SHA_512", 2, sha512.New},
}

// Bounds of the number of iterations (K-108).
const (
	minScramIterations = 4096
	maxScramIterations = 16384
)

// parseScram reads the arguments of --add-scram:
//
//	SCRAM-SHA-256=[name=alice,password=secret]
//	SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]
//
// No error ever holds the password.
func parseScram(args []string) ([]*protocol.UserScramCredentialRecord, error) {
	var records []*protocol.UserScramCredentialRecord
	for _, arg := range args {
		r, err := parseOneScram(strings.TrimSpace(arg))
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

func parseOneScram(arg string) (*protocol.UserScramCredentialRecord, error) {
	name, config, ok := strings.Cut(arg, "=")
	if !ok {
		return nil, refuse("Failed to find equals sign in SCRAM argument '%s'", arg)
	}
	i := slices.IndexFunc(scramMechanisms, func(m scramMechanism) bool { return m.name == name })
	if i < 0 {
		return nil, refuse("The add-scram mechanism %s is not supported.", name)
	}
	if !strings.HasPrefix(config, "[") {
		return nil, refuse("Expected configuration string to start with [")
	}
	if !strings.HasSuffix(config, "]") {
		return nil, refuse("Expected configuration string to end with ]")
	}
	return scramRecord(scramMechanisms[i], config[1:len(config)-1])
}

func scramRecord(m scramMechanism, config string) (*protocol.UserScramCredentialRecord, error) {
	parts, err := scramParts(config)
	if err != nil {
		return nil, err
	}
	take := func(key string) (string, bool) {
		v, ok := parts[key]
		delete(parts, key)
		return v, ok
	}
	name, ok := take("name")
	if !ok {
		return nil, refuse("You must supply 'name' to add-scram")
	}
	var salt []byte
	saltText, haveSalt := take("salt")
	if haveSalt {
		if salt, err = base64.StdEncoding.DecodeString(saltText); err != nil {
			return nil, refuse("Failed to decode given salt: %s", saltText)
		}
	}
	iterations := minScramIterations
	if text, ok := take("iterations"); ok {
		if iterations, err = strconv.Atoi(text); err != nil {
			return nil, refuse("Failed to parse iterations count: %s", text)
		}
	}
	password, havePassword := take("password")
	saltedText, haveSalted := take("saltedpassword")
	var salted []byte
	switch {
	case !havePassword && !haveSalted:
		return nil, refuse("You must supply one of 'password' or 'saltedpassword' to add-scram")
	case !havePassword && !haveSalt:
		return nil, refuse("You must supply 'salt' with 'saltedpassword' to add-scram")
	case !havePassword:
		if salted, err = base64.StdEncoding.DecodeString(saltedText); err != nil {
			return nil, refuse("Failed to decode given saltedPassword")
		}
	}
	if len(parts) > 0 {
		unknown := make([]string, 0, len(parts))
		for k := range parts {
			unknown = append(unknown, k)
		}
		slices.Sort(unknown)
		return nil, refuse("Unknown SCRAM configurations: %s", strings.Join(unknown, ", "))
	}
	if !haveSalt {
		salt = randomSalt()
	}
	if iterations < minScramIterations {
		return nil, refuse("The 'iterations' value must be >= %d for add-scram using %s", minScramIterations, m.java)
	}
	if iterations > maxScramIterations {
		return nil, refuse("The 'iterations' value must be <= %d for add-scram using %s", maxScramIterations, m.java)
	}
	if salted == nil {
		if salted, err = pbkdf2.Key(m.hash, password, salt, iterations, m.hash().Size()); err != nil {
			return nil, refuse("Cannot derive a key with %s: %v", m.name, err)
		}
	}
	stored := m.hash()
	stored.Write(mac(m, salted, "Client Key"))
	return &protocol.UserScramCredentialRecord{Name: name, Mechanism: m.code, Salt: salt, StoredKey: stored.Sum(nil),
		ServerKey: mac(m, salted, "Server Key"), Iterations: int32(iterations)}, nil
}

// scramParts splits name=alice,password=pw; values may stand in double quotes.
func scramParts(config string) (map[string]string, error) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(config, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, refuse("No equals sign found in a SCRAM component; expected name=..., password=..., salt=..., iterations=... or saltedpassword=...")
		}
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		parts[key] = value
	}
	return parts, nil
}

func mac(m scramMechanism, key []byte, text string) []byte {
	h := hmac.New(m.hash, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// randomSalt is 130 random bits as base 36 text, which is the form Kafka draws.
func randomSalt() []byte {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 130))
	if err != nil {
		panic("the operating system gives no random bytes: " + err.Error())
	}
	return []byte(n.Text(36))
}
