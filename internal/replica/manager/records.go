package manager

import "io"

// Records is the bytes of a fetch answer: a range of a segment file for sendfile, or memory of the hot tail.
// partlog.Slice implements it. Zero length is a nil Records.
type Records interface {
	// Len is the number of bytes.
	Len() int
	// WriteTo copies the bytes out, for connections that cannot sendfile.
	io.WriterTo
	// File gives the descriptor and range for sendfile; ok is false when the bytes are in memory.
	File() (fd uintptr, offset int64, ok bool)
	// Bytes gives the bytes when they are in memory; ok is false for a file.
	Bytes() (b []byte, ok bool)
	// Release gives the segment back; call it once, after the bytes are sent or given up.
	Release()
}
