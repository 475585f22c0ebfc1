package record

// compressor appends what is written to it, compressed, to a slice.
type compressor interface {
	write(p []byte)
	size() int // of the slice so far; an encoder may hold some bytes back
	// close finishes the stream, gives the encoder back to its pool and returns the slice.
	close() []byte
}

// compress starts a stream behind dst. The codec is valid and not None.
func compress(c Codec, l Levels, dst []byte) compressor {
	switch c {
	case Gzip:
		return newGzipWriter(l.Gzip, dst)
	case Snappy:
		return newSnappyWriter(dst)
	case LZ4:
		return newLZ4Writer(l.LZ4, dst)
	case Zstd:
		return newZstdWriter(l.Zstd, dst)
	}
	panic("record: no compressor for " + c.String())
}
