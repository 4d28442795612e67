// Latencies of commits, as a whole and by the second.

package measure

import "time"

// Commits are the commits of one writer. A commit's latency is the time from the end of the one before to its own end:
// the generator's few nanoseconds are in it, and one reading of the clock.
type Commits struct {
	all, now  *Latencies
	started   time.Time
	before    time.Time
	second    int
	rows      uint64
	bySeconds []Second
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
	return &Commits{all: NewLatencies(), now: NewLatencies(), started: now, before: now}
}

// Note takes in a commit of so many rows that has just ended, and says when that was.
func (c *Commits) Note(rows uint64) time.Time {
	now := time.Now()
	took := now.Sub(c.before)
	c.before = now
	if second := int(now.Sub(c.started) / time.Second); second != c.second {
		c.endSecond()
		c.second = second
	}
	c.rows += rows
	c.all.Note(took)
	c.now.Note(took)
	return now
}

func (c *Commits) endSecond() {
	if figures := c.now.Quantiles(); figures.Count > 0 {
		c.bySeconds = append(c.bySeconds, Second{c.second, figures.P50, figures.P99, figures.Max, c.rows})
	}
	c.rows = 0
	c.now.histogram.Reset()
	c.now.sum = 0
}

// End gives the latencies of all commits, and those of each second.
func (c *Commits) End() (Quantiles, []Second) {
	c.endSecond()
	return c.all.Quantiles(), c.bySeconds
}
