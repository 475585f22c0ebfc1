package partlog

// Offsets are the bounds of a log at one moment: LogStart <= LastStable <= HighWatermark <= LogEnd.
type Offsets struct {
	LogStart, LastStable, HighWatermark, LogEnd int64
}
