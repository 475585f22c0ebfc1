package partlog

import (
	"fmt"
	"strconv"
	"strings"
)

// Suffixes of the files in a partition's directory (D-38, D-51).
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	snapshotSuffix = ".snapshot"
	windowSuffix   = ".window" // samsa's own: see producerstate

	deletedSuffix = ".deleted"
	cleanedSuffix = ".cleaned"
	swapSuffix    = ".swap"

	// kraftDeletedSuffix marks snapshots of the metadata log, which raft/node looks after.
	kraftDeletedSuffix = ".checkpoint.deleted"
)

// segmentSuffixes are the files of a segment; the log comes first when a segment appears and when it goes.
var segmentSuffixes = [...]string{logSuffix, indexSuffix, timeSuffix, txnSuffix}

func fileName(offset int64, suffix string) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// parseName splits "00000000000000000042.log": 20 digits and what follows; false for other names.
func parseName(name string) (offset int64, suffix string, ok bool) {
	if len(name) <= 20 || name[20] != '.' {
		return 0, "", false
	}
	for _, c := range name[:20] {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	offset, err := strconv.ParseInt(name[:20], 10, 64)
	return offset, name[20:], err == nil
}

func isDeleted(name string) bool {
	return strings.HasSuffix(name, deletedSuffix) && !strings.HasSuffix(name, kraftDeletedSuffix)
}
