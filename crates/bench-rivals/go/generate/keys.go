// Keys and numbers as the bytes that a store gets: the same as FoldDB's codecs write.

package generate

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// UserKeyBytes is the length of a key of osmos: `user:` and ten digits.
const UserKeyBytes = 15

var userPrefix = []byte("user:")

// PutUserKey writes a key of osmos over what is in text, which has its length.
func PutUserKey(text []byte, number uint64) {
	copy(text, userPrefix)
	for i := UserKeyBytes - 1; i >= len(userPrefix); i-- {
		text[i] = '0' + byte(number%10)
		number /= 10
	}
}

// AppendUserKey appends a key of osmos.
func AppendUserKey(text []byte, number uint64) []byte {
	start := len(text)
	text = append(text, "user:0000000000"...)
	PutUserKey(text[start:], number)
	return text
}

// ParseUserKey is the number of a key that PutUserKey wrote.
func ParseUserKey(text []byte) (number uint64, ok bool) {
	digits, found := bytes.CutPrefix(text, userPrefix)
	if !found || len(text) != UserKeyBytes {
		return 0, false
	}
	number, err := strconv.ParseUint(string(digits), 10, 64)
	return number, err == nil
}

// AppendKey appends a number as a key, which sorts by its bytes.
func AppendKey(bytes []byte, key uint64) []byte { return binary.BigEndian.AppendUint64(bytes, key) }

// AppendValue appends a number as a value.
func AppendValue(bytes []byte, value uint64) []byte {
	return binary.LittleEndian.AppendUint64(bytes, value)
}

// Key reads a number that AppendKey wrote; bytes of another length are no key.
func Key(bytes []byte) (key uint64, ok bool) {
	if len(bytes) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(bytes), true
}

// Value reads a number that AppendValue wrote; bytes of another length are no value.
func Value(bytes []byte) (value uint64, ok bool) {
	if len(bytes) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(bytes), true
}
