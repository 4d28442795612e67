// The writes of osmos. Their ranks come from logarithms and exponentials, which two languages may round differently in
// the last bit; a rank differs by it about once in billions of draws, and both passes of one program always agree.

package generate

import (
	"math"
	"math/bits"
)

// Zipf draws ranks from 1 to n with probability proportional to 1/rank, by rejection-inversion (Hörmann and Derflinger
// 1996, with exponent 1).
type Zipf struct {
	n               float64
	low, high, sure float64
}

// NewZipf draws from n ranks, at least one.
func NewZipf(n uint64) Zipf {
	n = max(n, 1)
	return Zipf{
		n:    float64(n),
		low:  math.Log(1.5) - 1,
		high: math.Log(float64(n) + 0.5),
		sure: 2 - math.Exp(math.Log(2.5)-0.5),
	}
}

// Rank draws.
func (z *Zipf) Rank(chance *Chance) uint64 {
	for {
		u := z.high + chance.unit()*(z.low-z.high)
		x := math.Exp(u)
		rank := math.Floor(min(max(x+0.5, 1), z.n))
		if rank-x <= z.sure || u >= math.Log(rank+0.5)-1/rank {
			return uint64(rank)
		}
	}
}

// ZipfWrites are the writes of osmos: sums on keys that are hit by Zipf's law, the hot ones scattered over the key space.
type ZipfWrites struct {
	zipf         Zipf
	keys, stride uint64
	chance       Chance
}

// NewZipfWrites are the writes of a seed, over so many keys.
func NewZipfWrites(seed, keys uint64) ZipfWrites {
	keys = max(keys, 1)
	ratio := 0.618_033_988_749_895
	stride := uint64(float64(keys)*ratio) | 1
	for greatestCommonDivisor(stride, keys) != 1 {
		stride += 2
	}
	return ZipfWrites{NewZipf(keys), keys, stride, NewChance(seed)}
}

// Keys is the number of keys.
func (w *ZipfWrites) Keys() uint64 { return w.keys }

// NextKey is the number of the key that is hit next.
func (w *ZipfWrites) NextKey() uint64 {
	rank := w.zipf.Rank(&w.chance) - 1
	// A stride without a common divisor with the number of keys visits each of them once.
	high, low := bits.Mul64(rank, w.stride)
	return bits.Rem64(high, low, w.keys)
}

// NextOperand is what is added next: 1 to 100.
func (w *ZipfWrites) NextOperand() uint64 { return 1 + w.chance.Below(100) }

func greatestCommonDivisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
