package logdir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// property is one key and value of a Java properties file, in the order of the file.
type property struct{ key, value string }

// parseProperties reads Java properties text: comment lines starting with # or !, keys ended
// by =, : or blanks, backslash escapes, \uXXXX, continuation lines (J-08). Of a key that
// comes twice the last value counts. Text outside ASCII is kept byte for byte.
func parseProperties(text string) ([]property, error) {
	var out []property
	index := map[string]int{}
	for n := 1; len(text) > 0; {
		start := n
		line, rest, lines := logicalLine(text)
		text, n = rest, n+lines
		if line == "" {
			continue
		}
		keyEnd, valueStart := splitProperty(line)
		key, err := unescapeProperty(line[:keyEnd])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
		value, err := unescapeProperty(line[valueStart:])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
		if i, ok := index[key]; ok {
			out[i].value = value
			continue
		}
		index[key] = len(out)
		out = append(out, property{key, value})
	}
	return out, nil
}

// logicalLine takes the next line off text, joined with the lines that continue it, and says
// how many lines of text it spans. A comment or blank line gives "".
func logicalLine(text string) (line, rest string, lines int) {
	var joined strings.Builder
	for first := true; ; first = false {
		end := strings.IndexAny(text, "\r\n")
		natural := text
		if end >= 0 {
			natural, rest = text[:end], text[end+1:]
			if text[end] == '\r' {
				rest = strings.TrimPrefix(rest, "\n")
			}
		} else {
			rest = ""
		}
		lines++
		natural = strings.TrimLeft(natural, " \t\f")
		if first && (natural == "" || natural[0] == '#' || natural[0] == '!') {
			return "", rest, lines
		}
		trailing := len(natural) - len(strings.TrimRight(natural, `\`))
		if trailing%2 == 0 {
			joined.WriteString(natural)
			return joined.String(), rest, lines
		}
		joined.WriteString(natural[:len(natural)-1])
		if rest == "" {
			return joined.String(), rest, lines
		}
		text = rest
	}
}

// splitProperty says where the key ends and where the value begins.
func splitProperty(line string) (keyEnd, valueStart int) {
	keyEnd = len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			keyEnd = i
			break
		}
	}
	valueStart = keyEnd
	separator := false
	for valueStart < len(line) {
		c := line[valueStart]
		if c == ' ' || c == '\t' || c == '\f' {
			valueStart++
			continue
		}
		if (c == '=' || c == ':') && !separator {
			separator = true
			valueStart++
			continue
		}
		break
	}
	return keyEnd, valueStart
}

func unescapeProperty(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var out strings.Builder
	var units []uint16 // a run of \uXXXX, which may hold surrogate pairs
	flush := func() {
		for _, r := range utf16.Decode(units) {
			out.WriteRune(r)
		}
		units = units[:0]
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			flush()
			out.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			break
		}
		if s[i] == 'u' {
			if i+4 >= len(s) {
				return "", fmt.Errorf("the escape %q is cut short", s[i-1:])
			}
			code, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf("the escape %q is not \\u and four hexadecimal digits", s[i-1:i+5])
			}
			units = append(units, uint16(code))
			i += 4
			continue
		}
		flush()
		switch s[i] {
		case 't':
			out.WriteByte('\t')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 'f':
			out.WriteByte('\f')
		default:
			out.WriteByte(s[i])
		}
	}
	flush()
	return out.String(), nil
}

// appendProperty writes one line as Java's Properties.store does.
func appendProperty(dst []byte, p property) []byte {
	dst = appendEscaped(dst, p.key, true)
	dst = append(dst, '=')
	dst = appendEscaped(dst, p.value, false)
	return append(dst, '\n')
}

func appendEscaped(dst []byte, s string, key bool) []byte {
	for i, r := range s {
		switch r {
		case ' ':
			if i == 0 || key {
				dst = append(dst, '\\')
			}
			dst = append(dst, ' ')
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '=', ':', '#', '!', '\\':
			dst = append(dst, '\\', byte(r))
		case utf8.RuneError:
			dst = append(dst, s[i]) // kept byte for byte
			if _, size := utf8.DecodeRuneInString(s[i:]); size > 1 {
				dst = append(dst, s[i+1:i+size]...)
			}
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
