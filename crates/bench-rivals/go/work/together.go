// Several goroutines at the same work.

package work

import "sync"

// together has so many threads work at once. What each hands out in the end is called alone, and so may take in its figures.
// The first error of any is returned when all have ended.
func together(threads uint64, work func(thread uint64) (takeIn func(), err error)) (first error) {
	var all sync.WaitGroup
	var mutex sync.Mutex
	for thread := range threads {
		all.Go(func() {
			takeIn, err := work(thread)
			mutex.Lock()
			defer mutex.Unlock()
			if first == nil {
				first = err
			}
			takeIn()
		})
	}
	all.Wait()
	return first
}
