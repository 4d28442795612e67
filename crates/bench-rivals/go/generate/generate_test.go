// The values here are what crates/bench/src/generate.rs gives: the two sides must never drift apart.

package generate

import "testing"

func same[T comparable](t *testing.T, what string, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Errorf("%s: %#v, and the Rust side has %#v", what, found, wanted)
	}
}

func TestMixAndChanceAreTheRustOnes(t *testing.T) {
	same(t, "mix", [3]uint64{Mix(0), Mix(1), Mix(0xdead_beef_0123_4567)},
		[3]uint64{0, 0xb456bcfc34c2cb2c, 0x772240102e95ccd8})
	chance := NewChance(1)
	same(t, "chance", [4]uint64{chance.Next(), chance.Next(), chance.Next(), chance.Next()},
		[4]uint64{0x76e869957626605, 0xb9d991e6d7da1d78, 0x415210e943bbac72, 0x17c8e254b3730be6})
	below := [6]uint64{}
	for i := range below {
		below[i] = chance.Below(1000)
	}
	same(t, "below", below, [6]uint64{170, 973, 565, 442, 334, 646})
}

func TestRandomRowsAreTheRustOnes(t *testing.T) {
	for seed, wanted := range map[uint64][4]uint64{
		1: {0x2f001c5a9cf66fa8, 0x63dba6baffdc8b28, 0xfef5b6fca9fa2217, 0xdcd2b9507d5ea0d8},
		7: {0x68ecf1cacb69f37b, 0x757debefd4848a20, 0xde93dd1a904490c0, 0xf2aa87050b3f9bea},
	} {
		rows := NewRandomRows(seed)
		first, far := rows.Key(0), rows.Key(1_000_000)
		same(t, "rows", [4]uint64{first, rows.Value(first), far, rows.Value(far)}, wanted)
	}
}

func TestZipfWritesAreTheRustOnes(t *testing.T) {
	writes := NewZipfWrites(1, 1000)
	found := [12][2]uint64{}
	for i := range found {
		found[i] = [2]uint64{writes.NextKey(), writes.NextOperand()}
	}
	same(t, "writes", found, [12][2]uint64{{676, 73}, {993, 10}, {82, 98}, {47, 45}, {520, 65}, {95, 33},
		{476, 51}, {749, 51}, {857, 77}, {0, 98}, {0, 87}, {275, 87}})
}

func TestUserKeysSortAsTheirNumbersAndReadBack(t *testing.T) {
	text := make([]byte, UserKeyBytes)
	PutUserKey(text, 1234)
	same(t, "text", string(text), "user:0000001234")
	PutUserKey(text, 9_876_543_210)
	number, ok := ParseUserKey(text)
	same(t, "number", number, 9_876_543_210)
	same(t, "ok", ok, true)
	_, ok = ParseUserKey([]byte("user:12"))
	same(t, "ok", ok, false)
}

func TestNumbersAreBytesAndBack(t *testing.T) {
	key, _ := Key(AppendKey(nil, 77))
	value, _ := Value(AppendValue(nil, 88))
	same(t, "pair", [2]uint64{key, value}, [2]uint64{77, 88})
	_, ok := Key(nil)
	same(t, "ok", ok, false)
}
