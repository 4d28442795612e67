// Package check says what must be in a store, worked out without it: crates/bench/src/check.rs, bit for bit.
package check

import (
	"fmt"

	"folddb/bench-rivals/generate"
)

// RowSum is a sum over rows that does not depend on their order, with their number.
type RowSum struct{ Rows, Sum uint64 }

// Add takes in a row of numbers.
func (s *RowSum) Add(key, value uint64) {
	s.Rows++
	s.Sum += generate.Mix(key ^ generate.Mix(value+0x9e37_79b9_7f4a_7c15))
}

// String is the sum as reports print it.
func (s RowSum) String() string { return fmt.Sprintf("%016x", s.Sum) }

// Ascending checks that keys ascend strictly.
type Ascending struct {
	last   uint64
	any    bool
	broken uint64
}

// Next takes the next key.
func (a *Ascending) Next(key uint64) {
	if a.any && key <= a.last {
		a.broken++
	}
	a.last, a.any = key, true
}

// Holds says whether all keys ascended.
func (a *Ascending) Holds() bool { return a.broken == 0 }
