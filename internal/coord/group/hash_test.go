package group

import (
	"math/rand/v2"
	"testing"
	"unicode/utf16"
)

// D-153, D-102: Java's String.hashCode over UTF-16 units, with Math.abs(MIN_VALUE) taken as 0.
func TestHash(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int32
	}{
		{"", 0},
		{"a", 97},
		{"hello", 99162322},
		{"polygenelubricants", 0}, // hashCode is -2147483648
		{"\U0001F600", 1772899},   // D83D DE00: 31·55357 + 56832
	} {
		if got := Hash(c.in); got != c.want {
			t.Errorf("Hash(%q) = %d, want %d", c.in, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		b := make([]rune, rng.IntN(40))
		for i := range b {
			b[i] = rune(rng.IntN(0x10ffff))
		}
		s := string(b)
		if got, want := Hash(s), absolute(naive(s)); got != want {
			t.Fatalf("Hash(%q) = %d, want %d", s, got, want)
		}
	}
}

func naive(s string) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

func absolute(h int32) int32 {
	if h == -1<<31 {
		return 0
	}
	return max(h, -h)
}
