package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Exposure is what is wrong with who may read or write a file that a master key is in.
type Exposure struct {
	Wrong    string // "": nothing
	Remedy   string // the command that mends it
	Tolerate bool   // it is worth a warning only
}

// Guard refuses a master key that another user can have read or replaced, as ssh does with a
// private key. What it tolerates it returns, for a warning. It is for servers: this process is
// the one that uses the key. In a pod of Kubernetes volumes belong to the pod's group.
func Guard(file string, pod bool) (Exposure, error) {
	e := Exposed(file, os.Getuid(), pod)
	if e.Wrong != "" && !e.Tolerate {
		return e, fmt.Errorf(
			"the secret key in %s is not secret: %s; anyone who has it can make tokens; see who had access, then: %s",
			file, e.Wrong, e.Remedy,
		)
	}
	return e, nil
}

// AnyUser stands for the user that the server runs as where that is not known.
const AnyUser = -1

// Exposed looks at one file for a server that runs as a user. A file that cannot be looked
// at is left to those that read it.
func Exposed(file string, uid int, pod bool) Exposure {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return Exposure{}
	}
	owner, ok := ownerOf(info)
	if !ok {
		return Exposure{} // this system has other means
	}
	if uid == AnyUser {
		uid = owner
	}
	return place{uid: uid, mounted: Mounted(file), pod: pod}.judge(file, info.Mode().Perm(), owner)
}

// Data looks at a directory or a file of data, which other users must not change, nor read if it is a file. This is
// tolerated where they cannot reach it (hidden), as in a pod. Groups may have access: Kubernetes hands over volumes
// to them (securityContext.fsGroup).
func Data(path string, hidden bool) Exposure {
	info, err := os.Stat(path)
	if err != nil {
		return Exposure{}
	}
	if _, ok := ownerOf(info); !ok {
		return Exposure{} // this system has other means
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o002 != 0:
		return Exposure{
			Wrong:    fmt.Sprintf("every user can write to it (%s)", mode),
			Remedy:   "chmod o-rwx " + path,
			Tolerate: hidden,
		}
	case mode&0o004 != 0 && !info.IsDir():
		return Exposure{
			Wrong:    fmt.Sprintf("every user can read it (%s)", mode),
			Remedy:   "chmod o-rwx " + path,
			Tolerate: hidden,
		}
	}
	return Exposure{}
}

// Mounted reports whether a file was put there by a container's runtime, whose secrets
// are readable to all in the container by default: those of Docker are in /run/secrets,
// those of Kubernetes links into a hidden directory beside them.
func Mounted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return strings.HasPrefix(path, "/run/secrets/") || err == nil && strings.Contains(real, "/..")
}

// place is where a file of keys is looked at.
type place struct {
	uid     int  // of the server
	mounted bool // the runtime of a container put the file there
	pod     bool // this is a pod of Kubernetes
}

// judge says what is wrong with a file. Two faults are tolerated, since those who run a
// container cannot help them: that its runtime makes secrets readable to all within, where
// the server is alone, with whatever owner; and that Kubernetes gives what is on a volume
// to the group of the pod at each mount (securityContext.fsGroup).
func (p place) judge(file string, mode fs.FileMode, owner int) Exposure {
	private := "chmod 600 " + file
	if owner != p.uid {
		private = "chmod 640 " + file // or the server could not read it
	}
	switch {
	case mode&0o002 != 0:
		return Exposure{Wrong: fmt.Sprintf("every user can write to it (%s)", mode), Remedy: private}
	case mode&0o007 != 0:
		return Exposure{Wrong: fmt.Sprintf("every user can read it (%s)", mode), Remedy: private, Tolerate: p.mounted}
	case !slices.Contains([]int{0, p.uid}, owner):
		return Exposure{
			Wrong:    fmt.Sprintf("it belongs to uid %d, and this runs as uid %d", owner, p.uid),
			Remedy:   fmt.Sprintf("chown %d %s", p.uid, file),
			Tolerate: p.mounted,
		}
	case mode&0o020 != 0:
		return Exposure{Wrong: fmt.Sprintf("its group can write to it (%s)", mode), Remedy: private, Tolerate: p.pod}
	case mode&0o040 != 0 && owner == p.uid: // root hands over what it owns by the group
		return Exposure{Wrong: fmt.Sprintf("its group can read it (%s)", mode), Remedy: private, Tolerate: true}
	}
	return Exposure{}
}
