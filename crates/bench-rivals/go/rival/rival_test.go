// What the workloads rely on, and do not all see at a tiny scale.

package rival

import (
	"bytes"
	"fmt"
	"testing"
)

// withAll has every rival do something with a fresh store.
func withAll(t *testing.T, meaning Meaning, test func(t *testing.T, store Store)) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			store, err := Open(name, Settings{Dir: t.TempDir(), MemoryBytes: 8 << 20, Meaning: meaning})
			must(t, err)
			test(t, store)
			must(t, store.Close())
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSizesAreThoseOfTheValues(t *testing.T) {
	sizes := []int{0, 1, 127, 128, 511, 512, 1023, 1024, 1030, 16_383, 16_384, 16_390, 2_097_151, 2_097_152}
	withAll(t, Objects, func(t *testing.T, store Store) {
		writer := store.Writer()
		for _, size := range sizes {
			must(t, writer.Set(fmt.Appendf(nil, "%08d", size), bytes.Repeat([]byte{7}, size)))
			must(t, writer.Commit())
		}
		must(t, writer.Close())
		for _, isSettled := range []bool{false, true} {
			if isSettled {
				must(t, store.Settle())
			}
			reader := store.Reader(isSettled)
			for _, size := range sizes {
				found, isThere, err := reader.SizeBytes(fmt.Appendf(nil, "%08d", size))
				must(t, err)
				if !isThere || found != uint64(size) {
					t.Errorf("%d bytes for %d, %v", found, size, isThere)
				}
			}
			_, isThere, err := reader.SizeBytes([]byte("nothing"))
			must(t, err)
			if isThere {
				t.Error("nothing has a size")
			}
			reader.Close()
		}
	})
}

func TestAppendsOfAnyLengthStayInOrder(t *testing.T) {
	for _, meaning := range []Meaning{Append, AppendToFew} {
		withAll(t, meaning, func(t *testing.T, store Store) {
			writer, wanted := store.Writer(), []byte{}
			for length := range 50 {
				operand := bytes.Repeat([]byte{byte(length)}, length)
				wanted = append(wanted, operand...)
				must(t, writer.Append([]byte("key"), operand))
				if length%3 == 0 {
					must(t, writer.Commit())
				}
			}
			must(t, writer.Commit())
			must(t, writer.Close())
			for range 2 {
				reader := store.Reader(false)
				value, found, err := reader.Get([]byte("key"), nil)
				must(t, err)
				if !found || !bytes.Equal(value, wanted) {
					t.Errorf("%v", value)
				}
				reader.Close()
				must(t, store.Settle())
			}
		})
	}
}

func TestABatchMayBeLarge(t *testing.T) {
	withAll(t, Rows, func(t *testing.T, store Store) {
		writer, count := store.Writer(), 20_000
		for number := range count {
			must(t, writer.Set(fmt.Appendf(nil, "%08d", number), fmt.Appendf(nil, "%0500d", number)))
		}
		must(t, writer.Commit())
		must(t, writer.Close())
		reader := store.Reader(true)
		defer reader.Close()
		found := 0
		must(t, reader.Scan(nil, func(key, value []byte) bool {
			if bytes.HasSuffix(value, key) && len(value) == 500 {
				found++
			}
			return true
		}))
		if found != count {
			t.Errorf("%d rows", found)
		}
	})
}
