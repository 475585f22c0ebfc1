package partlog

import "io"

// Slice is a range of one segment file, as a fetch answer carries it. It keeps the file open, whatever happens to the
// segment, until Release. It may end in a part of a batch. Its methods may be called from one goroutine at a time.
type Slice struct{}

// Len is the number of bytes, never 0.
func (s *Slice) Len() int { panic("pending") }

// File gives the descriptor and position for sendfile; false when the file has no descriptor (memory file system) or
// the bytes are in memory.
func (s *Slice) File() (fd uintptr, offset int64, ok bool) { panic("pending") }

// Bytes gives the bytes when they are in memory already.
func (s *Slice) Bytes() (b []byte, ok bool) { panic("pending") }

// ReadAt reads from the slice; offset 0 is its first byte.
func (s *Slice) ReadAt(p []byte, off int64) (int, error) { panic("pending") }

// WriteTo copies the bytes to w.
func (s *Slice) WriteTo(w io.Writer) (int64, error) { panic("pending") }

// Release gives the file back; further calls do nothing.
func (s *Slice) Release() { panic("pending") }
