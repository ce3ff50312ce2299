package secrets

import (
	"io/fs"
	"strings"
	"testing"
)

// Security L14: a server does not start with a master key that others can read or replace.
func TestKeyFileModes(t *testing.T) {
	const us, other = 1000, 1001
	for _, tt := range []struct {
		name     string
		place    place
		mode     fs.FileMode
		owner    int
		wrong    string // "": nothing is
		remedy   string
		tolerate bool
	}{
		{"ours", place{uid: us}, 0o600, us, "", "", false},
		{"read-only", place{uid: us}, 0o400, us, "", "", false},
		{"of root, for our group", place{uid: us}, 0o640, 0, "", "", false},
		{"our group reads", place{uid: us}, 0o640, us, "its group can read it", "chmod 600 k", true},
		{"our group writes", place{uid: us}, 0o660, us, "its group can write to it", "chmod 600 k", false},
		{"fsGroup of a pod", place{uid: us, pod: true}, 0o660, us, "its group can write to it", "chmod 600 k", true},
		{"fsGroup of a pod, of root", place{uid: us, pod: true}, 0o660, 0, "its group can write to it", "chmod 640 k",
			true},
		{"all read", place{uid: us}, 0o644, us, "every user can read it", "chmod 600 k", false},
		{"all read what is root's", place{uid: us}, 0o644, 0, "every user can read it", "chmod 640 k", false},
		{"all read in a pod", place{uid: us, pod: true}, 0o664, us, "every user can read it", "chmod 600 k", false},
		{"all read a mounted secret", place{uid: us, mounted: true}, 0o444, 0, "every user can read it",
			"chmod 640 k", true},
		{"all write", place{uid: us}, 0o666, us, "every user can write to it", "chmod 600 k", false},
		{"all write a mounted secret", place{uid: us, mounted: true, pod: true}, 0o666, 0,
			"every user can write to it", "chmod 640 k", false},
		{"all may search", place{uid: us}, 0o601, us, "every user can read it", "chmod 600 k", false},
		{"of another user", place{uid: us}, 0o640, other, "it belongs to uid 1001, and this runs as uid 1000",
			"chown 1000 k", false},
		{"of another user, for root", place{uid: 0}, 0o600, other, "it belongs to uid 1001, and this runs as uid 0",
			"chown 0 k", false},
		{"of the host's user, mounted", place{uid: us, mounted: true}, 0o600, other, "it belongs to uid 1001",
			"chown 1000 k", true},
	} {
		e := tt.place.judge("k", tt.mode, tt.owner)
		if !strings.HasPrefix(e.Wrong, tt.wrong) || (e.Wrong == "") != (tt.wrong == "") || e.Remedy != tt.remedy ||
			e.Tolerate != tt.tolerate {
			t.Errorf("%s: got %+v, want %q, %q, tolerated: %v", tt.name, e, tt.wrong, tt.remedy, tt.tolerate)
		}
	}
}
