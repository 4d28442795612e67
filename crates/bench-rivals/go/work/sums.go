// What must be in a store of osmos.

package work

import (
	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
)

// userSum is a key and the sum that a read found, 0 where nothing was.
type userSum struct{ key, sum uint64 }

// sums are the sums of all keys.
type sums []uint64

// expectedSums are those of so many writes, from the generator alone.
func expectedSums(source generate.ZipfWrites, rows uint64) sums {
	sums := make(sums, source.Keys())
	for range rows {
		key := source.NextKey()
		sums[key] += source.NextOperand()
	}
	return sums
}

// grown says whether sums that were read only grew, and none was larger than it is in the end.
func (s sums) grown(reads []userSum) bool {
	last := map[uint64]uint64{}
	for _, read := range reads {
		if read.sum < last[read.key] || read.sum > s[read.key] {
			return false
		}
		last[read.key] = read.sum
	}
	return true
}

// sum is what must be in the store.
func (s sums) sum() (sum check.RowSum) {
	for key, is := range s {
		if is > 0 {
			sum.Add(uint64(key), is)
		}
	}
	return sum
}

// hit is a key near a random one, since not every key is written.
func (s sums) hit(chance *generate.Chance, key, value []byte) (hitKey, hitValue []byte) {
	number := chance.Below(uint64(len(s)))
	for tries := 0; s[number] == 0 && tries < len(s); tries++ {
		number = (number + 1) % uint64(len(s))
	}
	return generate.AppendUserKey(key, number), generate.AppendValue(value, s[number])
}

func (s sums) miss(chance *generate.Chance, key []byte) []byte {
	keys := uint64(len(s))
	return generate.AppendUserKey(key, keys+chance.Below(keys))
}

func (s sums) mayBecome(was, found []byte) bool {
	before, _ := generate.Value(was)
	now, ok := generate.Value(found)
	return ok && before <= now
}

func (s sums) numbers(key, value []byte) (number, is uint64, ok bool) {
	number, known := generate.ParseUserKey(key)
	is, isNumber := generate.Value(value)
	return number, is, known && isNumber
}
