// Latencies of commits, as a whole and by the second.

package measure

import "time"

// Commits are the commits of one writer. A commit's latency is the time from the end of the one before to its own end:
// the generator's few nanoseconds are in it, and one reading of the clock.
type Commits struct {
	// Those of the seconds that are over, and of the current one: so that a commit is noted once.
	past, current *Latencies
	started       time.Time
	before        time.Time
	secondEnds    time.Time
	rows          uint64
	bySeconds     []Second
}

// Second is one second of commits.
type Second struct {
	Second int     `json:"second"`
	P50    float64 `json:"p50_us"`
	P99    float64 `json:"p99_us"`
	Max    float64 `json:"max_us"`
	Rows   uint64  `json:"rows"`
}

// StartCommits begins to time them.
func StartCommits() *Commits {
	now := time.Now()
	return &Commits{past: NewLatencies(), current: NewLatencies(), started: now, before: now, secondEnds: now.Add(time.Second)}
}

// Note takes in a commit of so many rows that has just ended, and says when that was.
func (c *Commits) Note(rows uint64) time.Time {
	now := time.Now()
	c.current.Note(now.Sub(c.before))
	c.rows += rows
	c.before = now
	if !now.Before(c.secondEnds) {
		c.endSecond(now)
	}
	return now
}

func (c *Commits) endSecond(now time.Time) {
	second, figures := int(c.secondEnds.Sub(c.started)/time.Second)-1, c.current.Quantiles()
	c.bySeconds = append(c.bySeconds, Second{second, figures.P50, figures.P99, figures.Max, c.rows})
	c.past.Merge(c.current)
	c.current.Reset()
	for c.rows = 0; !c.secondEnds.After(now); c.secondEnds = c.secondEnds.Add(time.Second) {
	}
}

// End gives the latencies of all commits, and those of each second.
func (c *Commits) End() (Quantiles, []Second) {
	if c.rows > 0 {
		c.endSecond(c.before)
	}
	return c.past.Quantiles(), c.bySeconds
}
