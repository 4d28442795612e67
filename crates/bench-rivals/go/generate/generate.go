// Package generate is where keys and values come from: pure functions of a seed, the same as in
// crates/bench/src/generate.rs, bit for bit, so that every rival gets the same work and a second pass can tell what must
// be in a store without having kept anything. Package work calls it.
package generate

import "math/bits"

// golden is 2^64 divided by the golden ratio, the step of splitmix64.
const golden = 0x9e37_79b9_7f4a_7c15

// Mix is a bijection of 64-bit numbers that looks random: the finalizer of MurmurHash3 (Appleby).
func Mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51_afd7_ed55_8ccd
	x ^= x >> 33
	x *= 0xc4ce_b9fe_1a85_ec53
	return x ^ x>>33
}

// Chance gives random numbers by a counter: splitmix64 (Steele, Lea, Flood 2014).
type Chance struct{ state uint64 }

// NewChance begins the sequence of a seed.
func NewChance(seed uint64) Chance { return Chance{Mix(seed ^ golden)} }

// Next is the next number.
func (c *Chance) Next() uint64 {
	c.state += golden
	return Mix(c.state)
}

// Below is a number below limit, which is not 0.
func (c *Chance) Below(limit uint64) uint64 {
	high, _ := bits.Mul64(c.Next(), limit)
	return high
}

// unit is a number from 0 to 1, excluding 1.
func (c *Chance) unit() float64 { return float64(c.Next()>>11) / (1 << 53) }

// Fill makes bytes of the low ends of as many numbers.
func (c *Chance) Fill(bytes []byte) {
	for i := range bytes {
		bytes[i] = byte(c.Next())
	}
}

// RandomRows are the rows of hugedb: the key of an index is its image under a bijection, so keys are distinct by
// construction and any index past the last is a key that is not there. The value follows from the key.
type RandomRows struct{ offset uint64 }

// NewRandomRows are the rows of a seed.
func NewRandomRows(seed uint64) RandomRows { return RandomRows{Mix(seed + 1)} }

// Key is the key of an index.
func (r RandomRows) Key(index uint64) uint64 { return Mix(index + r.offset) }

// Value is the value of a key.
func (r RandomRows) Value(key uint64) uint64 { return Mix(key ^ 0x5bd1_e995_7b1f_2d3c) }
