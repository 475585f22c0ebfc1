package record

// skim is walk for what nearly every uncompressed batch is: well formed records in step, each within the
// time limits and with a key where one must be. It reads in one loop, in which numbers of one and two bytes need no call.
//
// At the first thing out of the ordinary it returns false and has changed nothing: walk finds out what it is.
func (v *validator) skim(b Batch) bool {
	if v.source != None || v.builder != nil || v.p.Origin != FromClient || b.TimestampType() == LogAppendTime {
		return false
	}
	p, base := b.Payload(), b.BaseTimestamp()
	limited, keys := v.cfg.TimestampType == CreateTime, v.cfg.Compacted
	maxTime, maxTimeDelta := v.maxTime, v.maxTimeDelta
	for i := range b.Count() {
		const least = 6 // attributes, time, offset, key, value, headers: a byte each
		if len(p) <= least {
			return false
		}
		var size int32
		var at int
		if c, d := p[0], p[1]; c < 0x80 {
			size, at = int32(unzig(c)), 1
		} else if d < 0x80 {
			size, at = unzig2(c, d), 2
		} else {
			size, at = longVarint(p, 0)
		}
		if at < 0 || size < least || int(size) > len(p)-at {
			return false
		}
		r := p[at : at+int(size)]
		p = p[at+int(size):]

		time := base
		if r[1] < 0x80 {
			time += unzig(r[1])
			at = 2
		} else {
			delta, n := readVarlong(r[1:])
			if n <= 0 {
				return false
			}
			time += delta
			at = 1 + n
		}
		if limited && time != NoTimestamp && !v.timeFits(time) {
			return false
		}
		// Offset delta, key length, value length: at+1 < len(r) says that two bytes can be looked at.
		if at+1 >= len(r) {
			return false
		}
		if c, d := r[at], r[at+1]; c < 0x80 {
			size = int32(unzig(c))
			at++
		} else if d < 0x80 {
			size = unzig2(c, d)
			at += 2
		} else {
			size, at = longVarint(r, at)
		}
		if size != i || uint(at)+1 >= uint(len(r)) {
			return false
		}
		if time > maxTime {
			maxTime, maxTimeDelta = time, i
		}
		if c, d := r[at], r[at+1]; c < 0x80 {
			size = int32(unzig(c))
			at++
		} else if d < 0x80 {
			size = unzig2(c, d)
			at += 2
		} else {
			size, at = longVarint(r, at)
		}
		if size < 0 && keys {
			return false
		}
		if at += int(max(size, 0)); uint(at)+1 >= uint(len(r)) {
			return false
		}
		if c, d := r[at], r[at+1]; c < 0x80 {
			size = int32(unzig(c))
			at++
		} else if d < 0x80 {
			size = unzig2(c, d)
			at += 2
		} else {
			size, at = longVarint(r, at)
		}
		if at < 0 {
			return false
		}
		if at += int(max(size, 0)); at+1 != len(r) || r[at] != 0 {
			var f fields
			if f.parse(r) != nil { // headers
				return false
			}
		}
	}
	if len(p) > 0 {
		return false
	}
	v.maxTime, v.maxTimeDelta, v.size = maxTime, maxTimeDelta, int64(len(b.Payload()))
	return true
}

// unzig2 is the value of a varint of two bytes.
func unzig2(c, d byte) int32 {
	u := uint32(c&0x7f) | uint32(d)<<7
	return int32(u>>1) ^ -int32(u&1)
}

// noVarint is a position that is in no record.
const noVarint = -1 << 40

// longVarint reads the varint at b[at:] and returns the position behind it, noVarint if there is no such number.
func longVarint(b []byte, at int) (v int32, next int) {
	v, n := readVarint(b[at:])
	if n <= 0 {
		return 0, noVarint
	}
	return v, at + n
}
