package generate

import (
	"encoding/hex"
	"testing"
)

func TestAppendsAreTheRustOnes(t *testing.T) {
	appends := NewAppends(1, 1000)
	for _, wanted := range []struct {
		document uint64
		operand  string
	}{
		{29, "72acbb43e9105241e60b73b354e2c8176e7c2b"},
		{973, "04c0d12ac0de4971d84068f41e4ca0"},
		{798, "0262f6a422311a54ce905f42581b41b292f0"},
		{173, "4b192e7e6b476eba6831bcf2af39"},
	} {
		document, operand := appends.Next()
		same(t, "document", document, wanted.document)
		same(t, "operand", hex.EncodeToString(operand), wanted.operand)
	}
	sum := uint64(0)
	appends = NewAppends(7, 300_000)
	for range 1_000_000 {
		document, operand := appends.Next()
		sum = Mix(sum ^ document)
		for _, is := range operand {
			sum = Mix(sum ^ uint64(is))
		}
	}
	same(t, "a million of them", sum, 0xb1c3fcf87c637504)
}

func TestObjectsAreTheRustOnes(t *testing.T) {
	for bounds, wanted := range map[[2]uint64][2]uint64{
		{4096, 20480}: {10898805, 0xe8ffa64877364fd6},
		{4000, 4800}:  {3961328, 0xb05e94c4bf8dde37},
		{8192, 8192}:  {7372800, 0x065c8b7852020f57},
		{1, 20}:       {16155, 0x6f499a74860d49fa},
	} {
		objects, value, found := NewObjects(3, bounds[0], bounds[1]), []byte{}, [2]uint64{}
		for index := range uint64(300) {
			for _, version := range []uint64{0, 1, 77} {
				value = objects.Append(value[:0], Mix(index), version)
				same(t, "length", objects.Bytes(Mix(index), version), uint64(len(value)))
				found[0] += uint64(len(value))
				found[1] = Mix(found[1])
				for _, is := range value {
					found[1] = (found[1] ^ uint64(is)) * 0x100000001b3
				}
			}
		}
		same(t, "objects", found, wanted)
	}
}

func TestAnObjectIsItsOwnAndNoOther(t *testing.T) {
	objects := NewObjects(1, 20, 90)
	is := func(value []byte, key, version uint64) bool {
		foundKey, foundVersion, ok := objects.Read(value)
		return ok && foundKey == key && foundVersion == version
	}
	for _, version := range []uint64{0, 1, 3} {
		value := objects.Append(nil, 7, version)
		same(t, "read", is(value, 7, version), true)
		same(t, "cut off", is(value[:len(value)-1], 7, version), false)
		for place := range value {
			value[place] ^= 1
			same(t, "changed", is(value, 7, version), false)
			value[place] ^= 1
		}
	}
	same(t, "short", is([]byte("short"), 0, 0), false)
}

// A million draws of each kind: a number that is rounded otherwise than in Rust would show.
func TestParetoIsTheRustOne(t *testing.T) {
	for numbers, wanted := range map[uint64]uint64{
		1: 0, 1000: 0x9b33ecef871a45b9, 200_000: 0xb7693bc8b1050702, 10_000_000: 0x6b98022687676390,
	} {
		pareto, chance, sum := NewPareto(numbers), NewChance(5), uint64(0)
		for range 1_000_000 {
			sum = Mix(sum ^ pareto.Number(&chance))
		}
		same(t, "numbers", sum, wanted)
	}
}
