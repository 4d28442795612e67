// Objects under keys that look random, each known by how often it was written: what more-than-ram, leveled and elliptics put
// and ask for.

package work

import (
	"bytes"
	"encoding/binary"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/rival"
)

// golden is the step from one word of a key to the next.
const golden = 0x9e37_79b9_7f4a_7c15

// shelf is where the objects of a run come from.
type shelf struct {
	rows     generate.RandomRows
	objects  *generate.Objects
	keyBytes int
}

// newShelf has objects of these sizes under keys of so many bytes, at least 8.
func newShelf(seed uint64, keyBytes int, bytesMin, bytesMax uint64) *shelf {
	return &shelf{generate.NewRandomRows(seed), generate.NewObjects(seed, bytesMin, bytesMax), max(keyBytes, 8)}
}

// number stands first in the key of an index, and the rest of it follows from it.
func (s *shelf) number(index uint64) uint64 { return s.rows.Key(index) }

// appendID appends the key of an index.
func (s *shelf) appendID(key []byte, index uint64) []byte {
	end := len(key) + s.keyBytes
	for word := s.number(index); len(key) < end; word = generate.Mix(word + golden) {
		key = binary.BigEndian.AppendUint64(key, word)
	}
	return key[:end]
}

// appendObject appends a version of the object of an index.
func (s *shelf) appendObject(value []byte, index, version uint64) []byte {
	return s.objects.Append(value, s.number(index), version)
}

// rowBytes are the bytes of a key and a version of its object.
func (s *shelf) rowBytes(index, version uint64) uint64 {
	return uint64(s.keyBytes) + s.objects.Bytes(s.number(index), version)
}

// objectWriter puts all objects in rounds, the objects of a round in one order.
type objectWriter struct {
	shelf      *shelf
	keys, next uint64
	key, value []byte
	bytes      uint64 // of keys and values up to now
}

func (w *objectWriter) put(writer rival.Writer) error {
	index, version := w.next%w.keys, w.next/w.keys
	w.next++
	w.key = w.shelf.appendID(w.key[:0], index)
	w.value = w.shelf.appendObject(w.value[:0], index, version)
	w.bytes += uint64(len(w.key) + len(w.value))
	return writer.Set(w.key, w.value)
}

// versions are what is in the store: of each index, the version that was written last.
type versions struct {
	shelf *shelf
	last  []uint64
}

// versionsAfter so many puts in rounds of all keys, of which there are no fewer than keys.
func versionsAfter(shelf *shelf, puts, keys uint64) versions {
	last := make([]uint64, keys)
	for index := range last {
		last[index] = puts/keys - 1
		if uint64(index) < puts%keys {
			last[index]++
		}
	}
	return versions{shelf, last}
}

// liveBytes are the bytes of all keys and values.
func (v versions) liveBytes() (bytes uint64) {
	for index, version := range v.last {
		bytes += v.shelf.rowBytes(uint64(index), version)
	}
	return bytes
}

// sum is what must be in the store.
func (v versions) sum() (sum check.RowSum) {
	for index, version := range v.last {
		sum.Add(v.shelf.number(uint64(index)), version)
	}
	return sum
}

func (v versions) hit(chance *generate.Chance, key, value []byte) (hitKey, hitValue []byte) {
	index := chance.Below(uint64(len(v.last)))
	return v.shelf.appendID(key, index), v.shelf.appendObject(value, index, v.last[index])
}

func (v versions) miss(chance *generate.Chance, key []byte) []byte {
	keys := uint64(len(v.last))
	return v.shelf.appendID(key, keys+chance.Below(keys))
}

func (v versions) mayBecome(was, found []byte) bool { return bytes.Equal(was, found) }

func (v versions) numbers(key, value []byte) (number, version uint64, ok bool) {
	if len(key) != v.shelf.keyBytes {
		return 0, 0, false
	}
	number, version, ok = v.shelf.objects.Read(value)
	return number, version, ok && number == binary.BigEndian.Uint64(key)
}

// checkAll scans the store, and checks that it has these versions and nothing else.
func (r *run) checkAll(data versions) error {
	found, err := r.scan(data, &Scan{})
	r.check(found, data.sum())
	return err
}
