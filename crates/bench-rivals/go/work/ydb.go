// ydb: documents that grow by small appends, as in YDB's benchmark of two million items. Once as appends, which a store
// with a merge operator takes blindly, and once (ydb-rmw) as a program would do it that knows of none: every update reads the
// document and puts the longer one.

package work

import (
	"bytes"

	"folddb/bench-rivals/check"
	"folddb/bench-rivals/generate"
	"folddb/bench-rivals/measure"
	"folddb/bench-rivals/rival"
)

// rowsPerDocument, unless the number of keys is given.
const rowsPerDocument = 10

func ydb(r *run) error {
	r.putKeys(rowsPerDocument)
	if err := r.open(rival.Append); err != nil {
		return err
	}
	updates := &appendWriter{appends: generate.NewAppends(r.job.Seed, r.Keys)}
	if err := r.load(updates.put); err != nil {
		return err
	}
	if err := r.settle(updates.bytes); err != nil {
		return err
	}
	data := writtenDocuments(generate.NewAppends(r.job.Seed, r.Keys), r.Rows, r.Keys)
	return r.readAll(data, data.sum(), updates.put)
}

func ydbReadModifyWrite(r *run) error {
	r.putKeys(rowsPerDocument)
	if err := r.open(rival.Rows); err != nil {
		return err
	}
	written, err := r.readModifyWrite(generate.NewAppends(r.job.Seed, r.Keys))
	if err != nil {
		return err
	}
	if err := r.settle(written); err != nil {
		return err
	}
	data := writtenDocuments(generate.NewAppends(r.job.Seed, r.Keys), r.Rows, r.Keys)
	return r.readStill(data, data.sum())
}

// readModifyWrite loads, and gives the bytes of keys and values that were put.
func (r *run) readModifyWrite(appends generate.Appends) (written uint64, err error) {
	say("loading")
	reader, writer := r.store.Reader(false), r.store.Writer()
	defer reader.Close()
	phase, commits := measure.StartPhase(r.Rows), measure.StartCommits()
	var key [generate.UserKeyBytes]byte
	var value []byte
	for done := uint64(1); done <= r.Rows; done++ {
		document, operand := appends.Next()
		generate.PutUserKey(key[:], document)
		if value, _, err = reader.Get(key[:], value); err != nil {
			return 0, err
		}
		value = append(value, operand...)
		if err = setOne(writer, key[:], value); err != nil {
			return 0, err
		}
		written += uint64(len(key) + len(value))
		phase.Reached(done, commits.Note(1))
	}
	r.putLoad(phase, commits)
	return written, writer.Close()
}

// appendWriter writes appends.
type appendWriter struct {
	appends generate.Appends
	key     [generate.UserKeyBytes]byte
	bytes   uint64 // of keys and operands up to now
}

func (w *appendWriter) put(writer rival.Writer) error {
	document, operand := w.appends.Next()
	generate.PutUserKey(w.key[:], document)
	w.bytes += uint64(len(w.key) + len(operand))
	return writer.Append(w.key[:], operand)
}

// documents are what each must be; empty where nothing was appended, and so is not there.
type documents [][]byte

// writtenDocuments are those of so many updates, from the generator alone.
func writtenDocuments(appends generate.Appends, updates, count uint64) documents {
	values := make(documents, count)
	for range updates {
		document, operand := appends.Next()
		values[document] = append(values[document], operand...)
	}
	return values
}

// sum is what must be in the store.
func (d documents) sum() (sum check.RowSum) {
	for number, value := range d {
		if len(value) > 0 {
			sum.Add(uint64(number), digest(value))
		}
	}
	return sum
}

// hit is a document near a random one, since not every one is written.
func (d documents) hit(chance *generate.Chance, key, value []byte) (hitKey, hitValue []byte) {
	number := chance.Below(uint64(len(d)))
	for tries := 0; len(d[number]) == 0 && tries < len(d); tries++ {
		number = (number + 1) % uint64(len(d))
	}
	return generate.AppendUserKey(key, number), append(value, d[number]...)
}

func (d documents) miss(chance *generate.Chance, key []byte) []byte {
	count := uint64(len(d))
	return generate.AppendUserKey(key, count+chance.Below(count))
}

func (d documents) mayBecome(was, found []byte) bool { return bytes.HasPrefix(found, was) }

func (d documents) numbers(key, value []byte) (number, is uint64, ok bool) {
	number, ok = generate.ParseUserKey(key)
	return number, digest(value), ok
}

// digest is a number that tells a value from others, and its bytes in another order.
func digest(value []byte) uint64 {
	digest := uint64(len(value))
	for _, is := range value {
		digest = generate.Mix(digest ^ uint64(is))
	}
	return digest
}
