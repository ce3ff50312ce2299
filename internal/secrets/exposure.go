package secrets

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Exposure describes wrong permissions of a file that contains a master key.
type Exposure struct {
	Wrong    string // "" if the permissions are right
	Remedy   string // the command that fixes it
	Tolerate bool   // only a warning is needed
}

// Guard refuses a master key that another user may have read or replaced, as ssh does with a
// private key. It returns a tolerated exposure for a warning. It is for servers, because it
// compares the file's owner with the user of this process. In a pod of Kubernetes, volumes belong
// to the pod's group.
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

// AnyUser is for callers that do not know the user of the server.
const AnyUser = -1

// Exposed checks one file for a server that runs as a user. It ignores a file that cannot be read;
// reading it will fail later.
func Exposed(file string, uid int, pod bool) Exposure {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return Exposure{}
	}
	owner, ok := ownerOf(info)
	if !ok {
		return Exposure{} // this system has other permissions
	}
	if uid == AnyUser {
		uid = owner
	}
	return place{uid: uid, mounted: Mounted(file), pod: pod}.judge(file, info.Mode().Perm(), owner)
}

// Data checks a data directory or file. Other users must not write to it, nor read it if it is a
// file. This is tolerated if they cannot reach it (hidden), as in a pod. Groups may have access:
// Kubernetes gives volumes to them (securityContext.fsGroup).
func Data(path string, hidden bool) Exposure {
	info, err := os.Stat(path)
	if err != nil {
		return Exposure{}
	}
	if _, ok := ownerOf(info); !ok {
		return Exposure{} // this system has other permissions
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

// Mounted reports whether a container runtime has mounted a file. By default, everyone in the
// container can read such secrets. Docker's are in /run/secrets, and Kubernetes' are links into a
// hidden directory beside them.
func Mounted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return strings.HasPrefix(path, "/run/secrets/") || err == nil && strings.Contains(real, "/..")
}

// place describes the environment of a key file.
type place struct {
	uid     int  // of the server
	mounted bool // a container runtime has mounted the file
	pod     bool // in a pod of Kubernetes
}

// judge checks the permissions of a file. It tolerates two exposures that the operator of a
// container cannot change. A runtime makes secrets readable for everyone in the container, where
// the server is alone, with any owner. Kubernetes gives files on a volume to the group of the pod
// at each mount (securityContext.fsGroup).
func (p place) judge(file string, mode fs.FileMode, owner int) Exposure {
	private := "chmod 600 " + file
	if owner != p.uid {
		private = "chmod 640 " + file // otherwise the server could not read it
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
	case mode&0o040 != 0 && owner == p.uid: // root grants access through the group
		return Exposure{Wrong: fmt.Sprintf("its group can read it (%s)", mode), Remedy: private, Tolerate: true}
	}
	return Exposure{}
}
