package label

import (
	"fmt"
	"strconv"
)

// Count returns a number with its noun, such as "1 key" and "2 keys".
func Count[N ~int | ~int64 | ~uint64](n N, one, many string) string {
	return fmt.Sprint(n, " ", Noun(n, one, many))
}

// Noun returns the form of a noun that goes with a number.
func Noun[N ~int | ~int64 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Bytes is a number of bytes for people, such as "12.3 MB". Units are powers of 1,000.
func Bytes(n int64) string {
	value, unit := float64(n), 0
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	for (value >= 1000 || value <= -1000) && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 {
		return Count(n, "byte", "bytes")
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit]
}
