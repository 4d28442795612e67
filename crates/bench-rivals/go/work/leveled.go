// leveled: objects of some kilobytes that are read five times as often as they are replaced, by several goroutines, hot ones
// more often than others: the benchmark that Riak's leveled was built for. Space is watched while it goes on.

package work

import (
	"sync/atomic"
	"time"

	"folddb/bench-rivals/disk"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

const (
	objectKeyBytes = 8
	// opsPerObject, unless the number of keys is given.
	opsPerObject = 4
	// putEvery: of so many ops, one is a put.
	putEvery  = 6
	lookEvery = time.Second
)

func leveled(r *run) error {
	r.putKeys(opsPerObject)
	r.ValueBytes = r.job.ValueBytes
	if err := r.open(rival.Objects); err != nil {
		return err
	}
	shelf := newShelf(r.job.Seed, objectKeyBytes, r.ValueBytes, r.ValueBytes)
	objects := &objectWriter{shelf: shelf, keys: r.Keys}
	if err := r.loadRows(r.Keys, objects.put); err != nil {
		return err
	}
	r.Fill, r.Load, r.Commits, r.CommitsBySecond = r.Load, nil, nil, nil
	if err := r.store.Settle(); err != nil {
		return err
	}
	data, err := r.serve(shelf)
	if err != nil {
		return err
	}
	replaced := uint64(0)
	for _, version := range data.last {
		replaced += version
	}
	if err := r.settle(objects.bytes + replaced*(objectKeyBytes+r.ValueBytes)); err != nil {
		return err
	}
	if err := r.putSpace(data.liveBytes()); err != nil {
		return err
	}
	if err := r.headsBesideGets(data); err != nil {
		return err
	}
	return r.checkAll(data)
}

// serve does all ops, and says what they leave.
func (r *run) serve(shelf *shelf) (versions, error) {
	say("serving")
	last := make([]atomic.Uint64, r.Keys)
	stop, space := make(chan struct{}), make(chan []int64, 1)
	phase, started := measure.StartPhase(r.Rows), time.Now()
	go func() { space <- watchSpace(r.job.Dir, stop) }()
	threads, all := min(uint64(max(r.Threads, 1)), r.Keys), newServed()
	err := together(threads, func(thread uint64) (func(), error) {
		clerk := &clerk{run: r, shelf: shelf, last: last, thread: thread, threads: threads, served: newServed()}
		err := clerk.serve()
		return func() { all.absorb(clerk.served) }, err
	})
	took := time.Since(started)
	close(stop)
	r.Serve = &Served{Gets: all.gets.Quantiles(), Puts: all.puts.Quantiles(), DiskBytes: <-space}
	r.Serve.Figures = phase.End()
	r.Serve.Seconds, r.Serve.RowsPerS = measure.Round(took.Seconds(), 3), measure.PerSecond(all.ops, took)
	r.judge(all.right)
	data := versions{shelf, make([]uint64, r.Keys)}
	for index := range last {
		data.last[index] = last[index].Load()
	}
	return data, err
}

// watchSpace is what the store takes on the disk, second by second.
func watchSpace(dir string, stop <-chan struct{}) (bySecond []int64) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		bytes, err := disk.AllocatedBytes(dir)
		if err != nil {
			bytes = 0 // files go while they are counted
		}
		bySecond = append(bySecond, bytes)
		select {
		case <-tick.C:
		case <-stop:
			return bySecond
		}
	}
}

// served is what a thread did.
type served struct {
	ops        uint64
	gets, puts *measure.Latencies
	right      bool
}

func newServed() *served {
	return &served{gets: measure.NewLatencies(), puts: measure.NewLatencies(), right: true}
}

func (s *served) absorb(other *served) {
	s.right = s.right && other.right
	s.ops += other.ops
	s.gets.Merge(other.gets)
	s.puts.Merge(other.puts)
}

// clerk is a thread: it puts the objects that are its own, and gets all.
type clerk struct {
	run   *run
	shelf *shelf
	// last is the version of each object that is surely there.
	last            []atomic.Uint64
	thread, threads uint64
	served          *served
	key, value      []byte
}

func (c *clerk) serve() error {
	reader, writer := c.run.store.Reader(false), c.run.store.Writer()
	defer reader.Close()
	pareto, chance := generate.NewPareto(uint64(len(c.last))), generate.NewChance(c.run.job.Seed^(c.thread+1)<<32)
	for op := c.thread; op < c.run.Rows; op += c.threads {
		index, err := pareto.Number(&chance), error(nil)
		if chance.Below(putEvery) == 0 {
			err = c.put(writer, c.own(index))
		} else {
			err = c.get(reader, index)
		}
		if err != nil {
			return err
		}
		c.served.ops++
	}
	return writer.Close()
}

// own is the object near an index that this thread alone puts.
func (c *clerk) own(index uint64) uint64 {
	own := index - index%c.threads + c.thread
	if own >= uint64(len(c.last)) {
		return c.thread
	}
	return own
}

func (c *clerk) put(writer rival.Writer, index uint64) error {
	version := c.last[index].Load() + 1
	c.key, c.value = c.shelf.appendID(c.key[:0], index), c.shelf.appendObject(c.value[:0], index, version)
	before := time.Now()
	err := setOne(writer, c.key, c.value)
	c.served.puts.Note(time.Since(before))
	c.last[index].Store(version)
	return err
}

func (c *clerk) get(reader rival.Reader, index uint64) error {
	c.key = c.shelf.appendID(c.key[:0], index)
	oldest, before := c.last[index].Load(), time.Now()
	value, found, err := reader.Get(c.key, c.value)
	c.served.gets.Note(time.Since(before))
	c.value = value
	number, version, ok := c.shelf.objects.Read(value)
	// The put of the next version may have been done but not yet noted.
	newest := c.last[index].Load() + 1
	isRight := found && ok && number == c.shelf.number(index) && oldest <= version && version <= newest
	c.served.right = c.served.right && isRight
	return err
}
