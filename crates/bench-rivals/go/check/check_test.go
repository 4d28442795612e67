// The sums here are what crates/bench/src/check.rs gives for the same rows.

package check

import (
	"testing"

	"folddb/bench-rivals/generate"
)

func TestSumsOfRandomRowsAreTheRustOnes(t *testing.T) {
	rows, sum := generate.NewRandomRows(1), RowSum{}
	for index := range uint64(1000) {
		key := rows.Key(index)
		sum.Add(key, rows.Value(key))
	}
	if sum != (RowSum{1000, 0xab52b1a3ca046f1e}) {
		t.Errorf("%v", sum)
	}
}

// A million draws of each kind: a rank that is rounded otherwise than in Rust would show.
func TestSumsOfZipfWritesAreTheRustOnes(t *testing.T) {
	for keys, wanted := range map[uint64]string{1000: "b8bb76d090ae1652", 10_000_000: "eea0e1cf861e0a01"} {
		writes, sum := generate.NewZipfWrites(1, keys), RowSum{}
		for range 1_000_000 {
			key := writes.NextKey()
			sum.Add(key, writes.NextOperand())
		}
		if sum.String() != wanted {
			t.Errorf("%d keys: %v, and the Rust side has %v", keys, sum, wanted)
		}
	}
}

func TestKeysThatRepeatOrFallAreSeen(t *testing.T) {
	ascend := func(keys ...uint64) bool {
		ascending := Ascending{}
		for _, key := range keys {
			ascending.Next(key)
		}
		return ascending.Holds()
	}
	if !ascend() || !ascend(5) || !ascend(0, 1, 7) || ascend(1, 1) || ascend(2, 1) {
		t.Error("order is misjudged")
	}
}
