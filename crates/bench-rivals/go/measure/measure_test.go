package measure

import (
	"testing"
	"time"
)

func TestQuantilesAreInMicroseconds(t *testing.T) {
	latencies := NewLatencies()
	for i := 1; i <= 1000; i++ {
		latencies.Note(time.Duration(i) * time.Microsecond)
	}
	figures := latencies.Quantiles()
	near := func(found, wanted float64) bool { return found > wanted*0.998 && found < wanted*1.002 }
	if figures.Count != 1000 || !near(figures.P50, 500) || !near(figures.P99, 990) || !near(figures.Max, 1000) ||
		figures.Mean != 500.5 {
		t.Errorf("%+v", figures)
	}
}

func TestNoCallsAreZero(t *testing.T) {
	if figures := NewLatencies().Quantiles(); figures != (Quantiles{}) {
		t.Errorf("%+v", figures)
	}
}

func TestAPhaseHasTenTenths(t *testing.T) {
	phase := StartPhase(100)
	for done := uint64(1); done <= 100; done++ {
		phase.Reached(done, time.Now())
	}
	if figures := phase.End(); len(figures.ByTenth) != 10 || figures.RowsPerS == 0 {
		t.Errorf("%+v", figures)
	}
}

func TestSecondsTogetherHaveAllRows(t *testing.T) {
	commits := StartCommits()
	commits.Note(5)
	commits.secondEnds = commits.started
	commits.Note(7)
	commits.Note(9)
	all, seconds := commits.End()
	if all.Count != 3 || len(seconds) != 2 || seconds[0].Rows != 12 || seconds[1].Rows != 9 {
		t.Errorf("%+v %+v", all, seconds)
	}
}

func TestTheSystemTellsOfThisProcess(t *testing.T) {
	watch := WatchMemory()
	defer watch.Stop()
	resident, anonymous := watch.Peaks()
	if resident == 0 || anonymous == 0 || anonymous > resident {
		t.Errorf("%d resident, %d anonymous", resident, anonymous)
	}
}
