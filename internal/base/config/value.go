package config

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the text of a value as Kafka does and checks it. The result is a bool, int16, int32,
// int64, float64, string (STRING, CLASS, PASSWORD) or []string; the error is Kafka's text.
func (k *Key) Parse(text string) (any, error) {
	value, why := parseType(k.Name, text, k.Type)
	if why != "" {
		return nil, errors.New(why)
	}
	if list, ok := value.([]string); ok && isListRule(k.Check) {
		value = distinct(list)
	}
	if k.Check != nil {
		if why := k.Check.Explain(k.Name, value); why != "" {
			return nil, errors.New(why)
		}
	}
	return value, nil
}

// isListRule: Kafka drops repeated entries of lists that have its ValidList rule, of no others.
func isListRule(c Check) bool { _, ok := c.(listRule); return ok }

// defaultValue is the parsed default; nil when it is null or there is none.
func (k *Key) defaultValue() any {
	if k.Null || k.Required {
		return nil
	}
	v, why := parseType(k.Name, k.Default, k.Type)
	if why != "" {
		panic("config: default of " + k.Name + ": " + why)
	}
	return v
}

func parseType(name, text string, t Type) (value any, why string) {
	s := javaTrim(text)
	switch t {
	case Boolean:
		switch {
		case strings.EqualFold(s, "true"):
			return true, ""
		case strings.EqualFold(s, "false"):
			return false, ""
		}
		return nil, invalid(name, text, "Expected value to be either true or false")
	case Int, Short, Long:
		bits := map[Type]int{Int: 32, Short: 16, Long: 64}[t]
		n, ok := javaInt(s, bits)
		if !ok {
			return nil, invalid(name, text, "Not a number of type "+t.String())
		}
		switch t {
		case Int:
			return int32(n), ""
		case Short:
			return int16(n), ""
		}
		return n, ""
	case Double:
		f, ok := javaDouble(s)
		if !ok {
			return nil, invalid(name, text, "Not a number of type "+t.String())
		}
		return f, ""
	case List:
		if s == "" {
			return []string{}, ""
		}
		return splitList(s), ""
	}
	return s, ""
}

// Text is the form Kafka shows a parsed value in (DescribeConfigs).
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int16:
		return strconv.FormatInt(int64(v), 10)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return javaDoubleText(v)
	case []string:
		return strings.Join(v, ",")
	case string:
		return v
	}
	panic("config: a value of a type no key has")
}

// javaText is a value inside a message: lists as Java prints them.
func javaText(value any) string {
	if list, ok := value.([]string); ok {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return Text(value)
}

// javaTrim is String.trim: everything up to and including the space goes, nothing else.
func javaTrim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

var commaWithBlanks = regexp.MustCompile(`[\t\n\v\f\r ]*,[\t\n\v\f\r ]*`)

func splitList(s string) []string { return commaWithBlanks.Split(s, -1) }

func distinct(list []string) []string {
	out := list[:0:0]
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if out == nil {
		out = []string{}
	}
	return out
}

// javaInt is Integer.parseInt and its brothers.
func javaInt(s string, bits int) (int64, bool) {
	if strings.Contains(s, "_") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, bits)
	return n, err == nil
}

var javaDoubleForm = regexp.MustCompile(`^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$`)

// javaDouble is Double.parseDouble, without hexadecimal numbers.
func javaDouble(s string) (float64, bool) {
	if !javaDoubleForm.MatchString(s) {
		return 0, false
	}
	if !strings.HasSuffix(s, "Infinity") && !strings.HasSuffix(s, "NaN") {
		s = strings.TrimRight(s, "fFdD")
	}
	s = strings.TrimPrefix(s, "+")
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// javaDoubleText is Double.toString.
func javaDoubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if abs := math.Abs(f); abs == 0 || abs >= 1e-3 && abs < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return digits + "E" + strconv.Itoa(n)
}
