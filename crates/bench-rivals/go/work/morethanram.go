// more-than-ram: objects of 4 to 20 KiB, each replaced fifteen times, many times the memory: YDB's more_than_ram2. What is
// dead must not be kept, nor written again and again.

package work

import "folddb/bench-rivals/rival"

const (
	bigKeyBytes = 8
	bigBytesMin = 4 << 10
	bigBytesMax = 20 << 10
	// putsPerObject, unless the number of keys is given.
	putsPerObject = 16
)

func moreThanRAM(r *run) error {
	r.putKeys(putsPerObject)
	r.Keys = min(r.Keys, r.Rows)
	if err := r.open(rival.Objects); err != nil {
		return err
	}
	shelf := newShelf(r.job.Seed, bigKeyBytes, bigBytesMin, bigBytesMax)
	objects := &objectWriter{shelf: shelf, keys: r.Keys}
	if err := r.load(objects.put); err != nil {
		return err
	}
	if err := r.settle(objects.bytes); err != nil {
		return err
	}
	data := versionsAfter(shelf, r.Rows, r.Keys)
	if err := r.putSpace(data.liveBytes()); err != nil {
		return err
	}
	return r.readStill(data, data.sum())
}
