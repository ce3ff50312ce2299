package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyFileModes checks that a server does not start with a master key that others can read or
// replace (security review L14).
func TestKeyFileModes(t *testing.T) {
	const us, other = 1000, 1001
	for _, tt := range []struct {
		name     string
		place    place
		mode     fs.FileMode
		owner    int
		wrong    string // "" for no exposure
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

// TestDataModes checks that a server does not start with data that every user can change or read
// (security review A-L2). Volumes of a pod's group are accepted.
func TestDataModes(t *testing.T) {
	for _, tt := range []struct {
		name     string
		dir      bool
		mode     fs.FileMode
		hidden   bool
		wrong    string
		tolerate bool
	}{
		{"a file of ours", false, 0o600, false, "", false},
		{"a file of a pod's group", false, 0o660, false, "", false},
		{"a file that all read", false, 0o644, false, "every user can read it", false},
		{"a file that all write", false, 0o666, false, "every user can write to it", false},
		{"a file that all write, out of reach", false, 0o666, true, "every user can write to it", true},
		{"a directory that all list", true, 0o755, false, "", false},
		{"a directory of a pod's group", true, 0o770, false, "", false},
		{"a directory that all write", true, 0o777, false, "every user can write to it", false},
		{"a directory that all write, in a pod", true, 0o777, true, "every user can write to it", true},
	} {
		path := filepath.Join(t.TempDir(), "data")
		err := os.WriteFile(path, nil, 0o600)
		if tt.dir {
			path = t.TempDir()
		}
		if err = errors.Join(err, os.Chmod(path, tt.mode)); err != nil {
			t.Fatal(err)
		}
		e := Data(path, tt.hidden)
		if !strings.HasPrefix(e.Wrong, tt.wrong) || (e.Wrong == "") != (tt.wrong == "") || e.Tolerate != tt.tolerate ||
			tt.wrong != "" && e.Remedy != "chmod o-rwx "+path {
			t.Errorf("%s: got %+v, want %q, tolerated: %v", tt.name, e, tt.wrong, tt.tolerate)
		}
	}
}
