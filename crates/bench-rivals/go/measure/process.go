// What the operating system says about this process, from /proc. Elsewhere the figures are 0.

package measure

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// ticksPerSecond of the clock in /proc/self/stat: 100 on every Linux.
const ticksPerSecond = 100

// sampleEvery is how often memory is looked at.
const sampleEvery = 10 * time.Millisecond

// CPUSeconds that the process has used, in user and system mode together.
func CPUSeconds() float64 {
	stat, _ := os.ReadFile("/proc/self/stat")
	// The second field is the name in parentheses, which may hold blanks; utime and stime are the 14th and 15th.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond
}

// DeviceBytes that the process has caused to be written to a device: pages dirtied less those dropped before they were
// written. They are right once files are synced.
func DeviceBytes() int64 {
	return field("/proc/self/io", "write_bytes") - field("/proc/self/io", "cancelled_write_bytes")
}

// ReadBytes that the process has caused to be read from a device.
func ReadBytes() int64 { return field("/proc/self/io", "read_bytes") }

// field reads the number of a line `name: number`.
func field(path, name string) int64 {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			number, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return number
		}
	}
	return 0
}

// MemoryWatch watches the memory of the process.
type MemoryWatch struct {
	anonymous atomic.Int64
	stop      chan struct{}
}

// WatchMemory begins to watch; forgets earlier peaks as far as the system lets it.
func WatchMemory() *MemoryWatch {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	watch := &MemoryWatch{stop: make(chan struct{})}
	watch.look()
	go watch.run()
	return watch
}

func (w *MemoryWatch) run() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look()
		case <-w.stop:
			return
		}
	}
}

func (w *MemoryWatch) look() {
	now := field("/proc/self/status", "RssAnon") * 1024
	for seen := w.anonymous.Load(); now > seen && !w.anonymous.CompareAndSwap(seen, now); seen = w.anonymous.Load() {
	}
}

// Peaks up to now: of all resident pages (VmHWM), mapped files among them, and of anonymous pages, which is what the process
// really asks of the machine; these are sampled.
func (w *MemoryWatch) Peaks() (resident, anonymous int64) {
	w.look()
	return field("/proc/self/status", "VmHWM") * 1024, w.anonymous.Load()
}

// Stop ends the watch.
func (w *MemoryWatch) Stop() { close(w.stop) }
