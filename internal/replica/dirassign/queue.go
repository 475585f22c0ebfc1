package dirassign

import (
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
)

const (
	maxReports = 2250                   // per request: fits 64 KiB with ten directories (J-88)
	linger     = 100 * time.Millisecond // from the first report to the request
	backoff    = 100 * time.Millisecond // after the first failure, then doubled
	backoffMax = 10 * time.Second
)

// report is one queued report.
type report struct {
	tp       model.TopicIDPartition
	dir      model.DirectoryID
	urgent   bool
	done     func(error)
	at       time.Time // first queued
	deadline time.Time // set when it names a failed directory (J-72)
}

// end tells the owner, once. A nil report has none.
func (r *report) end(err error) {
	if r != nil && r.done != nil {
		done := r.done
		r.done = nil
		done(err)
	}
}

// queue holds reports in the order they came. It has one owner; the time is an argument.
type queue struct {
	queued   map[model.TopicIDPartition]*report
	order    []*report // may hold reports that are not queued any more
	flying   []*report // of the request on its way
	inFlight bool
	failures int // requests in a row
	sendAt   time.Time
}

func newQueue() queue { return queue{queued: map[model.TopicIDPartition]*report{}} }

// len counts what is queued and what is on its way, a partition in both twice.
func (q *queue) len() int { return len(q.queued) + len(q.flying) }

// add queues a report and returns the one it takes the place of.
func (q *queue) add(r *report, now time.Time) (old *report) {
	old = q.queued[r.tp]
	if old != nil && !old.deadline.IsZero() {
		r.deadline, r.urgent = old.deadline, true // the replica leaves a failed directory
	}
	if len(q.queued) == 0 && q.failures == 0 {
		q.sendAt = now.Add(linger)
	}
	q.queued[r.tp] = r
	q.order = append(q.order, r)
	return old
}

// dirFailed makes the reports that name dir urgent, and says whether there is one.
func (q *queue) dirFailed(dir model.DirectoryID, deadline time.Time) (any bool) {
	for _, r := range q.queued {
		if r.dir == dir {
			r.urgent, r.deadline, any = true, deadline, true
		}
	}
	for _, r := range q.flying {
		if r.dir == dir {
			r.urgent, r.deadline, any = true, deadline, true
		}
	}
	return any
}

// urgent tells whether something may not wait.
func (q *queue) urgent() bool {
	for _, r := range q.queued {
		if r.urgent {
			return true
		}
	}
	return false
}

// wait is how long nothing needs to be done.
func (q *queue) wait(now time.Time) time.Duration {
	wait := time.Hour
	if len(q.queued) > 0 && !q.inFlight {
		at := q.sendAt
		if q.failures == 0 && (len(q.queued) > maxReports || q.urgent()) {
			at = now
		}
		wait = at.Sub(now)
	}
	return max(wait, 0)
}

// take is the next request, if one is due: urgent reports first.
func (q *queue) take(now time.Time) []*report {
	if q.inFlight || len(q.queued) == 0 || q.wait(now) > 0 && now.Before(q.sendAt) {
		return nil
	}
	var first, rest []*report
	for _, r := range q.order {
		if q.queued[r.tp] != r {
			continue // superseded, or in the list twice
		}
		if r.urgent {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	all := append(first, rest...)
	n := min(len(all), maxReports)
	q.flying, q.order, q.inFlight = all[:n:n], all[n:], true
	for _, r := range q.flying {
		delete(q.queued, r.tp)
	}
	return q.flying
}

// prune drops what nobody wants.
func (q *queue) prune(wanted func(model.TopicIDPartition) bool) (gone []*report) {
	for tp, r := range q.queued {
		if !wanted(tp) {
			delete(q.queued, tp)
			gone = append(gone, r)
		}
	}
	return gone
}

// requeue puts a report back unless a newer one for its partition is queued; then it is superseded.
func (q *queue) requeue(r *report) (superseded bool) {
	if q.queued[r.tp] != nil {
		return true
	}
	q.queued[r.tp] = r
	q.order = append(q.order, r)
	return false
}

// failed takes a whole request back. jitter is a factor near one.
func (q *queue) failed(now time.Time, jitter float64) (superseded []*report) {
	wait := backoff << min(q.failures, 10)
	q.failures++
	q.sendAt = now.Add(time.Duration(float64(min(wait, backoffMax)) * jitter))
	for _, r := range q.flying {
		if q.requeue(r) {
			superseded = append(superseded, r)
		}
	}
	q.flying, q.inFlight = nil, false
	return superseded
}

// outcome is what an answer brought.
type outcome struct {
	acknowledged, superseded, notFound []*report
	refused                            []refusal
}

type refusal struct {
	report *report
	code   int16
}

// answered takes a good answer: each report by its own code; one that is missing was not heard (J-92).
func (q *queue) answered(codes map[answerKey]int16, now time.Time) (out outcome) {
	q.failures = 0
	for _, r := range q.flying {
		code, ok := codes[answerKey{r.tp, r.dir}]
		switch {
		case ok && code == 0:
			out.acknowledged = append(out.acknowledged, r)
		case ok && code == kerr.LogDirNotFound.Code:
			out.notFound = append(out.notFound, r)
		case q.requeue(r):
			out.superseded = append(out.superseded, r)
		default:
			out.refused = append(out.refused, refusal{r, code})
		}
	}
	q.flying, q.inFlight = nil, false
	q.sendAt = now.Add(linger)
	return out
}

// late finds a report about a failed directory whose time is over.
func (q *queue) late(now time.Time) *report {
	isLate := func(r *report) bool { return !r.deadline.IsZero() && !now.Before(r.deadline) }
	for _, r := range q.queued {
		if isLate(r) {
			return r
		}
	}
	for _, r := range q.flying {
		if isLate(r) {
			return r
		}
	}
	return nil
}

// drain empties the queue.
func (q *queue) drain() []*report {
	left := q.flying
	for _, r := range q.queued {
		left = append(left, r)
	}
	*q = newQueue()
	return left
}
