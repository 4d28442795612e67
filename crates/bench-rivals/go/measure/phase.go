// Wall clock, CPU and speed of a phase.

package measure

import "time"

// Phase times a phase of so many rows.
type Phase struct {
	started      time.Time
	cpuStarted   float64
	rows         uint64
	tenths       []uint64
	tenthStarted time.Time
	tenthRow     uint64
}

// Figures of a phase that has ended.
type Figures struct {
	Seconds  float64  `json:"seconds"`
	RowsPerS uint64   `json:"rows_per_s,omitempty"`
	ByTenth  []uint64 `json:"rows_per_s_by_tenth,omitempty"`
	CPU      float64  `json:"cpu_s"`
}

// StartPhase begins a phase.
func StartPhase(rows uint64) *Phase {
	now := time.Now()
	return &Phase{started: now, cpuStarted: CPUSeconds(), rows: rows, tenthStarted: now}
}

// Reached notes that so many rows are done now.
func (p *Phase) Reached(done uint64, now time.Time) {
	due := p.rows * uint64(len(p.tenths)+1) / 10
	if done < due || len(p.tenths) == 10 {
		return
	}
	p.tenths = append(p.tenths, PerSecond(done-p.tenthRow, now.Sub(p.tenthStarted)))
	p.tenthRow, p.tenthStarted = done, now
}

// End ends the phase.
func (p *Phase) End() Figures {
	took := time.Since(p.started)
	return Figures{
		Seconds:  Round(took.Seconds(), 3),
		RowsPerS: PerSecond(p.rows, took),
		ByTenth:  p.tenths,
		CPU:      Round(CPUSeconds()-p.cpuStarted, 2),
	}
}

// PerSecond is events a second.
func PerSecond(events uint64, took time.Duration) uint64 {
	return uint64(float64(events) / max(took.Seconds(), 1e-9))
}
