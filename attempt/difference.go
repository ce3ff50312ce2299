package attempt

import "fmt"

// Difference is where two strings differ first.
type Difference struct {
	At   int    `json:"at"`   // the byte, from 0
	Got  string `json:"got"`  // what was sent, from a little before
	Want string `json:"want"` // what was expected, likewise
}

const (
	contextBefore = 24
	contextAfter  = 24
)

// Differ is where got differs from want first, nil when they are equal.
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

// Nearest is the difference from the value that agrees with got the longest; nil when there is no value,
// or got is one of them.
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

// String says it in words.
func (d *Difference) String() string {
	return fmt.Sprintf("they differ first at byte %d: got %q, expected %q", d.At, d.Got, d.Want)
}
