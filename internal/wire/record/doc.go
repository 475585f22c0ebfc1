// Package record reads, checks, patches and builds record batches (KIP-98, message format v2) and
// reads the two older message formats.
//
// Kind: pure. No goroutine, clock or I/O. Encoders and decoders of the codecs are pooled.
//
// A batch, big-endian:
//
//	 0  8  baseOffset            given by the leader, outside the checksum
//	 8  4  batchLength           bytes that follow, total - 12
//	12  4  partitionLeaderEpoch  given by the leader, outside the checksum
//	16  1  magic                 2
//	17  4  crc                   CRC-32C of bytes 21..end
//	21  2  attributes            bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon
//	23  4  lastOffsetDelta
//	27  8  baseTimestamp         ms; the delete horizon when bit 6 is set
//	35  8  maxTimestamp          ms
//	43  8  producerId            -1 none
//	51  2  producerEpoch         -1 none
//	53  4  baseSequence          -1 none
//	57  4  recordCount
//	61     records               one blob when a codec is set
//
// A record; varints are zig-zag:
//
//	length varint             bytes that follow
//	attributes int8           0
//	timestampDelta varlong
//	offsetDelta varint
//	key length varint, key    -1 null
//	value length varint, value
//	header count varint, then per header: key length varint, key, value length varint (-1 null), value
//
// Batch is a byte slice with accessors; nothing is parsed before it is asked for:
//
//	for b, err := range record.Split(bytes) {     // whole batches, strict bounds
//		for r, err := range record.Records(b) {   // decompresses as it goes; r is borrowed
//		}
//	}
//
// A leader passes what a client sent through ValidateProduce, then patches the offset with Assign.
package record
