// osmos: sums on keys that are hit by Zipf's law, written flat out by one goroutine, while another reads a key or a stretch
// of the store every ten milliseconds.

package work

import (
	"time"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	readPause = 10 * time.Millisecond
	// selectEvery: of so many reads, one is a select of a stretch.
	selectEvery   = 8
	selectRows    = 100
	readerSeed    = 0x7265_6164
	sumWriteBytes = generate.UserKeyBytes + 8
	// rowsPerSum, unless the number of keys is given.
	rowsPerSum = 5
)

func osmos(r *run) error {
	r.putKeys(rowsPerSum)
	if err := r.open(rival.Sum); err != nil {
		return err
	}
	reader, err := r.loadSums()
	if err != nil {
		return err
	}
	if err := r.settle(r.Rows * sumWriteBytes); err != nil {
		return err
	}
	data := expectedSums(generate.NewZipfWrites(r.job.Seed, r.Keys), r.Rows)
	r.judge(reader.right && data.grown(reader.seen))
	more := &sumWriter{source: generate.NewZipfWrites(r.job.Seed, r.Keys)}
	return r.readAll(data, data.sum(), more.put)
}

// loadSums loads beside the reader.
func (r *run) loadSums() (*sumReader, error) {
	stop, ended := make(chan struct{}), make(chan error, 1)
	reader := &sumReader{store: r.store.Reader(false), source: generate.NewZipfWrites(r.job.Seed^readerSeed, r.Keys),
		gets: measure.NewLatencies(), selects: measure.NewLatencies(), right: true}
	defer reader.store.Close()
	go func() { ended <- reader.run(stop) }()
	writer := sumWriter{source: generate.NewZipfWrites(r.job.Seed, r.Keys)}
	err := r.load(writer.put)
	close(stop)
	if readError := <-ended; err == nil {
		err = readError
	}
	r.Reader = &Reader{reader.gets.Quantiles(), reader.selects.Quantiles()}
	return reader, err
}

// sumWriter writes sums.
type sumWriter struct {
	source generate.ZipfWrites
	key    [generate.UserKeyBytes]byte
}

func (w *sumWriter) put(writer rival.Writer) error {
	generate.PutUserKey(w.key[:], w.source.NextKey())
	return writer.Add(w.key[:], w.source.NextOperand())
}

// sumReader reads beside the load.
type sumReader struct {
	store         rival.Reader
	source        generate.ZipfWrites
	gets, selects *measure.Latencies
	seen          []userSum // in the order of reading
	right         bool
	key           [generate.UserKeyBytes]byte
	value         []byte
}

func (s *sumReader) run(stop <-chan struct{}) error {
	for count := 1; ; count++ {
		if err := s.read(count%selectEvery == 0); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(readPause):
		}
	}
}

func (s *sumReader) read(isSelect bool) (err error) {
	number := s.source.NextKey()
	generate.PutUserKey(s.key[:], number)
	before := time.Now()
	if isSelect {
		err = s.selectRows()
		s.selects.Note(time.Since(before))
		return err
	}
	s.value, _, err = s.store.Get(s.key[:], s.value)
	s.gets.Note(time.Since(before))
	sum, _ := generate.Value(s.value)
	s.seen = append(s.seen, userSum{number, sum})
	return err
}

// selectRows reads a hundred rows from a key on.
func (s *sumReader) selectRows() error {
	rows, order := 0, check.Ascending{}
	err := s.store.Scan(s.key[:], func(key, _ []byte) bool {
		number, _ := generate.ParseUserKey(key)
		order.Next(number)
		rows++
		return rows < selectRows
	})
	s.right = s.right && order.Holds()
	return err
}
