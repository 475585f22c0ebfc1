package producerstate

import "math"

// incrementSequence adds n to a sequence, which wraps after 2147483647 to 0 (D-06).
func incrementSequence(seq, n int32) int32 {
	if seq > math.MaxInt32-n {
		return n - (math.MaxInt32 - seq) - 1
	}
	return seq + n
}

// decrementSequence is its inverse.
func decrementSequence(seq, n int32) int32 {
	if seq < n {
		return math.MaxInt32 - (n - seq) + 1
	}
	return seq - n
}

// follows says whether next is the sequence right after last.
func follows(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}
