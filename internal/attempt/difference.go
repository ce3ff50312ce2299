package attempt

import "fmt"

// Difference describes the first difference between two strings.
type Difference struct {
	At   int    `json:"at"`   // byte offset, from 0
	Got  string `json:"got"`  // the received text around At
	Want string `json:"want"` // the expected text around At
}

const (
	contextBefore = 24
	contextAfter  = 24
)

// Differ returns the first difference between got and want, or nil if they are equal.
func Differ(got, want string) *Difference {
	if got == want {
		return nil
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return &Difference{At: at, Got: around(got, at), Want: around(want, at)}
}

// Nearest returns the difference from the value that shares the longest prefix with got. It returns
// nil if want is empty or contains got.
func Nearest(got string, want []string) (nearest *Difference) {
	for _, w := range want {
		d := Differ(got, w)
		if d == nil {
			return nil
		}
		if nearest == nil || d.At > nearest.At {
			nearest = d
		}
	}
	return nearest
}

func around(s string, at int) string {
	from, to := max(at-contextBefore, 0), min(at+contextAfter, len(s))
	out := cut(s[from:to], contextBefore+contextAfter)
	if from > 0 {
		out = "..." + out
	}
	if to < len(s) {
		out += "..."
	}
	return out
}

// String describes the difference in words.
func (d *Difference) String() string {
	return fmt.Sprintf("they differ first at byte %d: got %q, expected %q", d.At, d.Got, d.Want)
}
