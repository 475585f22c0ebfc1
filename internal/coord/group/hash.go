package group

import "unicode/utf16"

// Hash is |javaStringHash(s)| (D-153): h = 31·h + unit over UTF-16 units, with |−2³¹| counted as 0.
func Hash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xffff {
			hi, lo := utf16.EncodeRune(r)
			h = 31*(31*h+int32(hi)) + int32(lo)
			continue
		}
		h = 31*h + int32(r)
	}
	if h < 0 {
		h = -h
	}
	return max(h, 0)
}

// utf16Len is the length Java gives a string.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
