package label

import "fmt"

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
