// What must be in a store of osmos. Answers are noted, and judged when the sums are known: they would take memory of
// the process that is measured.

package work

import (
	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
)

// userSum is a key and the sum that a read found, 0 where nothing was.
type userSum struct{ key, sum uint64 }

// sums is the data of osmos.
type sums struct {
	keys   uint64
	hits   generate.ZipfWrites
	misses generate.Chance
	text   [generate.UserKeyBytes]byte
	atRest bool
	right  bool
	// What was read while sums grew, in the order of reading, and what was read at rest.
	beside, final []userSum
	found, now    check.RowSum
	order         check.Ascending
}

func newSums(job Job) *sums {
	return &sums{keys: job.Keys, hits: generate.NewZipfWrites(job.Seed^atRestSeed, job.Keys),
		misses: generate.NewChance(job.Seed ^ readSeed), atRest: true, right: true}
}

// key of a hit is drawn as writes are; a few may never have been written, which the answer tells.
func (s *sums) key(hit bool, into []byte) []byte {
	number := uint64(0)
	if hit {
		number = s.hits.NextKey()
	} else {
		number = s.keys + s.misses.Below(s.keys)
	}
	generate.PutUserKey(s.text[:], number)
	return append(into, s.text[:]...)
}

func (s *sums) answered(key, value []byte, found, hit bool) {
	s.right = s.right && (hit || !found)
	if !hit || !s.atRest {
		return
	}
	number, _ := generate.ParseUserKey(key)
	sum := uint64(0)
	if found {
		sum, _ = generate.Value(value)
	}
	s.final = append(s.final, userSum{number, sum})
}

func (s *sums) row(key, value []byte) {
	number, known := generate.ParseUserKey(key)
	if !known {
		number = unknownUserKey // the checksum will tell
	}
	sum, isNumber := generate.Value(value)
	s.right = s.right && isNumber
	s.order.Next(number)
	s.now.Add(number, sum)
}

// scanned ends a scan; each must have found the same.
func (s *sums) scanned() {
	s.right = s.right && s.order.Holds() && (s.found == check.RowSum{} || s.found == s.now)
	s.found, s.now, s.order = s.now, check.RowSum{}, check.Ascending{}
}

// verdict works the sums out by the generator alone, and judges all reads.
func (s *sums) verdict(job Job) (found, wanted check.RowSum, right bool) {
	source, end := generate.NewZipfWrites(job.Seed, job.Keys), make([]uint64, job.Keys)
	for range job.Rows {
		key := source.NextKey()
		end[key] += source.NextOperand()
	}
	for key, sum := range end {
		if sum > 0 {
			wanted.Add(uint64(key), sum)
		}
	}
	right = s.right && grows(s.beside, end)
	for _, read := range s.final {
		right = right && read.sum == end[read.key]
	}
	return s.found, wanted, right
}

// grows says whether sums only grew, and none was larger than it is in the end.
func grows(reads []userSum, end []uint64) bool {
	last := map[uint64]uint64{}
	for _, read := range reads {
		if read.sum < last[read.key] || read.sum > end[read.key] {
			return false
		}
		last[read.key] = read.sum
	}
	return true
}
