package record

import "fmt"

// Codec is a compression codec as numbered in batch attributes.
type Codec int8

const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec(%d)", int8(c))
}

// Valid says whether Kafka knows the codec.
func (c Codec) Valid() bool { return c >= None && c <= Zstd }

// ParseCodec reads a value of compression.type other than "producer".
func ParseCodec(s string) (Codec, bool) {
	switch s {
	case "none", "uncompressed":
		return None, true
	case "gzip":
		return Gzip, true
	case "snappy":
		return Snappy, true
	case "lz4":
		return LZ4, true
	case "zstd":
		return Zstd, true
	}
	return None, false
}

// Levels are the compression levels of one topic.
type Levels struct {
	Gzip int // -1 default, 1..9
	LZ4  int // 1..17
	Zstd int // -131072..22
}

// DefaultLevels are Kafka's defaults.
func DefaultLevels() Levels { return Levels{Gzip: -1, LZ4: 9, Zstd: 3} }
