// Package rival has the stores that are measured, behind one interface. A file per store states its settings and why
// its experts would choose them. Package work calls it.
package rival

import (
	"fmt"
	"runtime/debug"
)

// Settings are what every rival gets alike.
type Settings struct {
	Dir string
	// MemoryBytes for buffers and caches together.
	MemoryBytes int64
	// Sync says that every commit is synced; otherwise it is handed to the operating system, as far as the rival can.
	Sync bool
	// Meaning says what the store is for: rivals choose merge operators and places of values by it.
	Meaning Meaning
}

// Meaning is what a store holds, and how the operands of a key become its value.
type Meaning int

const (
	// Rows are small, and there are no operands.
	Rows Meaning = iota
	// Objects of some kilobytes are put whole.
	Objects
	// Sum adds numbers.
	Sum
	// Append puts operands behind each other: a few to each of many keys.
	Append
	// AppendToFew likewise: very many to each of a few keys.
	AppendToFew
)

// appends says whether operands are put behind each other.
func (m Meaning) appends() bool { return m == Append || m == AppendToFew }

// Store is a rival that is open. Its methods may be called by several goroutines.
type Store interface {
	// Writer collects and commits. One goroutine uses it.
	Writer() Writer
	// Reader reads. One goroutine uses it. At rest nobody writes, and one transaction or snapshot may serve all reads;
	// otherwise each read sees all that was committed before it.
	Reader(atRest bool) Reader
	// Settle writes all buffers to files and waits until no background work is due.
	Settle() error
	// Optimize merges everything, as far as the rival can.
	Optimize() error
	Close() error
}

// Writer collects ops, which happen together at Commit. It keeps no slice that it is given.
type Writer interface {
	Set(key, value []byte) error
	Delete(key []byte) error
	// Add adds to the number of a key.
	Add(key []byte, operand uint64) error
	// Append puts an operand of any length behind the value of a key.
	Append(key, operand []byte) error
	Commit() error
	Close() error
}

// Reader gets and scans.
type Reader interface {
	// Get copies the value of a key into a buffer, which it returns.
	Get(key, into []byte) (value []byte, found bool, err error)
	// SizeBytes is the length of a value: without reading it, where the store has a way.
	SizeBytes(key []byte) (bytes uint64, found bool, err error)
	// Scan visits the rows from a key on, in order, as they are now, until visit says false.
	Scan(from []byte, visit func(key, value []byte) bool) error
	Close()
}

// kind of rival.
type kind struct {
	module string
	about  string
	open   func(Settings) (Store, error)
	// heapBytes is the soft limit of the Go heap, of so much memory for buffers and caches.
	heapBytes func(memoryBytes int64) int64
}

var kinds = map[string]kind{
	"pebble":           {"github.com/cockroachdb/pebble/v2", pebbleAbout, openPebble, pebbleHeap},
	"pebble-separated": {"github.com/cockroachdb/pebble/v2", pebbleSeparatedAbout, openPebbleSeparated, pebbleHeap},
	"badger":           {"github.com/dgraph-io/badger/v4", badgerAbout, openBadger, badgerHeap},
}

// Names of the rivals.
func Names() []string { return []string{"pebble", "pebble-separated", "badger"} }

// Open opens or creates the store of a rival.
func Open(name string, settings Settings) (Store, error) {
	kind, err := find(name)
	if err != nil {
		return nil, err
	}
	return kind.open(settings)
}

// Prepare sets the soft limit of the Go heap as the rival needs it, and says what that is with its other settings.
func Prepare(name string, memoryBytes int64) (settings string, err error) {
	kind, err := find(name)
	if err != nil {
		return "", err
	}
	heap := kind.heapBytes(memoryBytes)
	debug.SetMemoryLimit(heap)
	return fmt.Sprintf("%s; soft limit of the Go heap %d MB", kind.about, heap>>20), nil
}

// Version of the rival's module in this program.
func Version(name string) string {
	build, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	for _, module := range build.Deps {
		if module.Path == kinds[name].module {
			return module.Version
		}
	}
	return "unknown"
}

func find(name string) (kind, error) {
	kind, known := kinds[name]
	if !known {
		return kind, fmt.Errorf("there is no rival `%s`: choose one of %v", name, Names())
	}
	return kind, nil
}
