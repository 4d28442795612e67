// Package disk looks after the files of a closed store: what they take up, syncing them, and dropping them from the page
// cache so that the next reads are cold.
package disk

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// AllocatedBytes is what the files under a directory take up; holes and unused preallocation of sparse files do not count.
func AllocatedBytes(dir string) (bytes int64, err error) {
	err = eachFile(dir, func(file *os.File) error {
		var stat unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
			return err
		}
		bytes += stat.Blocks * 512
		return nil
	})
	return bytes, err
}

// Sync writes every file under a directory to the device.
func Sync(dir string) error {
	return eachFile(dir, (*os.File).Sync)
}

// Drop syncs every file under a directory and drops it from the page cache. Mapped files must be unmapped before.
func Drop(dir string) error {
	return eachFile(dir, func(file *os.File) error {
		if err := file.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// eachFile visits the files under a directory. One that goes away meanwhile is passed over: an open store may remove it.
func eachFile(dir string, visit func(*os.File) error) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && !entry.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			return nil
		} else if err != nil {
			return err
		}
		defer file.Close()
		return visit(file)
	})
}
