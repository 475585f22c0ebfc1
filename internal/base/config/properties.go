package config

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Setting is one key with its value and where it was written.
type Setting struct {
	Key, Value string
	Origin     Origin
}

// ParseProperties reads a properties file exactly as java.util.Properties does: Latin-1 bytes,
// comments with # and !, keys ended by =, : or a blank, values continued by a backslash at the end
// of the line, \t \n \r \f and \uXXXX. There is no expansion of ${...}. A key may come twice; the
// later one counts. The error is a malformed \uXXXX, the only thing Java refuses.
//
// It is our own reader because the one mistake report worth having names the line, and the
// properties libraries at hand drop it (and expand, and read UTF-8).
func ParseProperties(file string, data []byte) ([]Setting, error) {
	var out []Setting
	r := propertyReader{data: data, line: 1}
	for {
		text, line, ok := r.logicalLine()
		if !ok {
			return out, nil
		}
		rawKey, rawValue := cutProperty(text)
		origin := Origin{File: file, Line: line}
		key, err := unescape(rawKey)
		var value string
		if err == nil {
			value, err = unescape(rawValue)
		}
		if err != nil {
			return out, Mistakes{{Key: latin1(rawKey), Text: err.Error(), Hint: `\u and four hexadecimal digits`, Origin: origin}}
		}
		out = append(out, Setting{key, value, origin})
	}
}

type propertyReader struct {
	data []byte
	pos  int
	line int
}

// logicalLine joins a line with its continuations; blank and comment lines are skipped.
func (r *propertyReader) logicalLine() (text []byte, line int, ok bool) {
	for r.pos < len(r.data) {
		line = r.line
		natural := r.naturalLine()
		natural = trimBlanks(natural)
		if len(natural) == 0 || natural[0] == '#' || natural[0] == '!' {
			continue
		}
		text = append([]byte(nil), natural...)
		for continued(text) {
			text = text[:len(text)-1]
			if len(text) == 0 || r.pos >= len(r.data) { // nothing yet: the next line may be a comment
				break
			}
			text = append(text, trimBlanks(r.naturalLine())...)
		}
		if len(text) > 0 {
			return text, line, true
		}
	}
	return nil, 0, false
}

// naturalLine cuts the text up to the next \n, \r or \r\n.
func (r *propertyReader) naturalLine() []byte {
	start := r.pos
	for r.pos < len(r.data) && r.data[r.pos] != '\n' && r.data[r.pos] != '\r' {
		r.pos++
	}
	text := r.data[start:r.pos]
	if r.pos < len(r.data) {
		if r.data[r.pos] == '\r' && r.pos+1 < len(r.data) && r.data[r.pos+1] == '\n' {
			r.pos++
		}
		r.pos++
		r.line++
	}
	return text
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}

// continued: an odd number of backslashes ends the text.
func continued(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// cutProperty finds the end of the key and the beginning of the value.
func cutProperty(b []byte) (key, value []byte) {
	i, separator := 0, false
	for escaped := false; i < len(b); i++ {
		c := b[i]
		if !escaped && (c == '=' || c == ':') {
			separator = true
			break
		}
		if !escaped && blank(c) {
			break
		}
		escaped = c == '\\' && !escaped
	}
	key = b[:i]
	if separator {
		i++
	}
	for ; i < len(b); i++ {
		if blank(b[i]) {
			continue
		}
		if !separator && (b[i] == '=' || b[i] == ':') {
			separator = true
			continue
		}
		break
	}
	return key, b[i:]
}

func unescape(b []byte) (string, error) {
	var units []uint16
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' {
			units = append(units, uint16(c))
			continue
		}
		i++
		if i == len(b) {
			break
		}
		switch c = b[i]; c {
		case 'u':
			if len(b)-i < 5 {
				return "", fmt.Errorf(`Malformed \uxxxx encoding.`)
			}
			var u uint16
			for _, h := range b[i+1 : i+5] {
				switch {
				case '0' <= h && h <= '9':
					u = u<<4 | uint16(h-'0')
				case 'a' <= h|0x20 && h|0x20 <= 'f':
					u = u<<4 | uint16(h|0x20-'a'+10)
				default:
					return "", fmt.Errorf(`Malformed \uxxxx encoding.`)
				}
			}
			units = append(units, u)
			i += 4
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		default:
			units = append(units, uint16(c))
		}
	}
	return string(utf16.Decode(units)), nil
}

func latin1(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return s.String()
}
