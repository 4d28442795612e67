// A rate that a goroutine keeps to: so many rows or gets a second, or as many as it can.

package work

import "time"

// awake is how long a goroutine that is early waits awake; it sleeps for the rest, since sleeps end late.
const awake = 200 * time.Microsecond

// pace keeps to a rate. Who is late goes on at once, until it has caught up.
type pace struct {
	perS    uint64
	started time.Time
	count   uint64
}

func newPace(perS uint64) *pace { return &pace{perS: perS, started: time.Now()} }

// done says that so many more are done, and waits until the next may begin.
func (p *pace) done(count uint64) {
	if p.perS == 0 {
		return
	}
	p.count += count
	due := time.Duration(float64(p.count) / float64(p.perS) * float64(time.Second))
	for early := due - time.Since(p.started); early > 0; early = due - time.Since(p.started) {
		if early > awake {
			time.Sleep(early - awake)
		}
	}
}
