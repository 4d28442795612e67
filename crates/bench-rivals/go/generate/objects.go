// Larger values: documents that grow by small appends (ydb), and objects of some kilobytes that are replaced whole
// (more-than-ram, leveled, elliptics). The same as in crates/bench/src/generate/objects.rs.

package generate

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

const (
	appendBytesMin = 4
	appendBytesMax = 24
	// stampBytes are the key, and how often it was written before.
	stampBytes = 16
	poolWords  = 1 << 17
	objectSeed = 0x6f62_6a65_6374_7321
)

// Appends are appends to random documents: the updates of YDB's benchmark, which grow its items to about 142 bytes by ten of them.
type Appends struct {
	chance    Chance
	documents uint64
	operand   [appendBytesMax]byte
}

// NewAppends are the appends of a seed to so many documents.
func NewAppends(seed, documents uint64) Appends {
	return Appends{chance: NewChance(seed), documents: max(documents, 1)}
}

// Next is the number of the next document, and what is appended to it: 4 to 24 bytes, which stay until the next call.
func (a *Appends) Next() (document uint64, operand []byte) {
	document = a.chance.Below(a.documents)
	length := appendBytesMin + a.chance.Below(appendBytesMax-appendBytesMin+1)
	for place := 0; place < appendBytesMax; place += 8 {
		binary.LittleEndian.PutUint64(a.operand[place:], a.chance.Next())
	}
	return document, a.operand[:length]
}

// Objects are values that look random, each a stretch of one pool behind a stamp of its own: made at the speed of a copy,
// and no two alike, so that nothing but the right one passes for it.
type Objects struct {
	pool               []byte
	bytesMin, bytesMax uint64
}

// NewObjects are the objects of a seed, of so many bytes, both bounds included; at least the 16 of the stamp.
func NewObjects(seed, bytesMin, bytesMax uint64) *Objects {
	bytesMin, bytesMax = max(bytesMin, stampBytes), max(bytesMin, bytesMax, stampBytes)
	chance, pool := NewChance(seed^objectSeed), []byte{}
	for range poolWords + (bytesMax+7)/8 {
		pool = binary.LittleEndian.AppendUint64(pool, chance.Next())
	}
	return &Objects{pool, bytesMin, bytesMax}
}

// Bytes is how long a version of an object is.
func (o *Objects) Bytes(key, version uint64) uint64 {
	return o.bytesMin + Mix(key^bits.RotateLeft64(version, 40))%(o.bytesMax-o.bytesMin+1)
}

// Append appends a version of an object.
func (o *Objects) Append(value []byte, key, version uint64) []byte {
	value = binary.LittleEndian.AppendUint64(value, key)
	value = binary.LittleEndian.AppendUint64(value, version)
	return append(value, o.body(key, version)...)
}

// Read is the key and the version that a value claims; ok only when all of it is as it must be.
func (o *Objects) Read(value []byte) (key, version uint64, ok bool) {
	if len(value) < stampBytes {
		return 0, 0, false
	}
	key, version = binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])
	return key, version, bytes.Equal(value[stampBytes:], o.body(key, version))
}

// body is what stands behind the stamp.
func (o *Objects) body(key, version uint64) []byte {
	length := o.Bytes(key, version) - stampBytes
	start := Mix(key*31^version) % (uint64(len(o.pool)) - length)
	return o.pool[start : start+length]
}

// Pareto draws numbers below a bound of which the first fifth gets four fifths of all hits, and within it likewise: the
// self-similar distribution of Gray et al. («Quickly generating billion-record synthetic databases», 1994). As with Zipf,
// two languages may round a power differently in its last bit: below ten million numbers, that moves one in billions.
type Pareto struct {
	numbers  uint64
	exponent float64
}

// NewPareto draws below numbers, which is at least 1.
func NewPareto(numbers uint64) Pareto { return Pareto{max(numbers, 1), math.Log(0.2) / math.Log(0.8)} }

// Number draws.
func (p Pareto) Number(chance *Chance) uint64 {
	return min(uint64(float64(p.numbers)*math.Pow(chance.unit(), p.exponent)), p.numbers-1)
}
