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
	// selectEvery: of so many reads, one is a select over a range.
	selectEvery    = 8
	selectRows     = 100
	readerSeed     = 0x7265_6164
	atRestSeed     = 0x7265_7374
	besideSeed     = 0x6d6f_7265
	sumWriteBytes  = generate.UserKeyBytes + 8
	keysOfRows     = 5 // keys are rows divided by this, unless they are given
	unknownUserKey = ^uint64(0)
)

func osmos(r *run) error {
	if r.job.Keys == 0 {
		r.job.Keys = max(r.Rows/keysOfRows, 1)
	}
	sums := newSums(r.job)
	if err := r.open(rival.Sum); err != nil {
		return err
	}
	if err := r.loadSums(sums); err != nil {
		return err
	}
	if err := r.settle(r.Rows * sumWriteBytes); err != nil {
		return err
	}
	if err := r.readAll(sums); err != nil {
		return err
	}
	sums.atRest = false
	more := &sumWriter{source: generate.NewZipfWrites(r.job.Seed^besideSeed, r.job.Keys)}
	if err := r.readWhileWriting(sums, more.put); err != nil {
		return err
	}
	r.judge(sums.verdict(r.job))
	return nil
}

// loadSums loads beside the reader.
func (r *run) loadSums(sums *sums) error {
	stop, ended := make(chan struct{}), make(chan error, 1)
	reader := newSumReader(r.store, r.job, sums)
	go func() { ended <- reader.run(stop) }()
	writer := sumWriter{source: generate.NewZipfWrites(r.job.Seed, r.job.Keys)}
	err := r.load(writer.put)
	close(stop)
	if readError := <-ended; err == nil {
		err = readError
	}
	r.Reader = &Reader{reader.gets.Quantiles(), reader.selects.Quantiles()}
	return err
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
	store         rival.Store
	source        generate.ZipfWrites
	gets, selects *measure.Latencies
	sums          *sums
	key           [generate.UserKeyBytes]byte
	value         []byte
}

func newSumReader(store rival.Store, job Job, sums *sums) *sumReader {
	return &sumReader{store: store, source: generate.NewZipfWrites(job.Seed^readerSeed, job.Keys),
		gets: measure.NewLatencies(), selects: measure.NewLatencies(), sums: sums}
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
	s.sums.beside = append(s.sums.beside, userSum{number, sum})
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
	s.sums.right = s.sums.right && order.Holds()
	return err
}
