//go:build unix

package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Account is the user that a program runs as.
type Account struct {
	UID, GID   uint32
	Groups     []uint32 // in addition to GID
	name, home string   // "" if only the numbers are known
	other      bool     // differs from the user of this process
}

// LookUp returns the account for who: a user name with all of the user's groups, or UID:GID. "" is
// the account of this process. Only root can run programs as another user.
func LookUp(who string) (*Account, error) {
	if who == "" {
		return own()
	}
	a, err := parse(who)
	switch {
	case err != nil:
		return nil, err
	case os.Geteuid() == int(a.UID):
		return own()
	case os.Geteuid() != 0:
		return nil, fmt.Errorf(
			"a program can run as %s only when the server runs as root, and it runs as the user with the number %d",
			who, os.Geteuid(),
		)
	}
	a.other = true
	return a, nil
}

func own() (*Account, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	a := &Account{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for _, g := range groups {
		a.Groups = append(a.Groups, uint32(g))
	}
	return a, nil
}

func parse(who string) (*Account, error) {
	if uid, gid, ok := strings.Cut(who, ":"); ok {
		u, err := number(uid)
		if err != nil {
			return nil, fmt.Errorf("%q is neither a user nor of the form UID:GID", who)
		}
		g, err := number(gid)
		if err != nil {
			return nil, fmt.Errorf("%q is neither a user nor of the form UID:GID", who)
		}
		return &Account{UID: u, GID: g}, nil
	}
	u, err := user.Lookup(who)
	if err != nil {
		return nil, fmt.Errorf("this machine has no user %q", who)
	}
	a := &Account{name: u.Username, home: u.HomeDir}
	if a.UID, err = number(u.Uid); err != nil {
		return nil, err
	}
	if a.GID, err = number(u.Gid); err != nil {
		return nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("the groups of %s cannot be read: %w", who, err)
	}
	for _, id := range ids {
		g, err := number(id)
		if err != nil {
			return nil, err
		}
		a.Groups = append(a.Groups, g)
	}
	return a, nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

// become makes cmd run as the account, without any groups of this process.
func (a *Account) become(cmd *exec.Cmd) {
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: a.Groups}
	}
}

// env returns the environment variables that identify the user.
func (a *Account) env() []string {
	switch {
	case !a.other:
		return nil
	case a.name == "":
		return []string{"HOME=/", "USER=", "LOGNAME="}
	}
	return []string{"HOME=" + a.home, "USER=" + a.name, "LOGNAME=" + a.name}
}

// CanRead reports whether a process of the account can read the file at path. It checks the mode,
// owner and group of the file and of its parent directories.
func (a *Account) CanRead(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil || !a.may(path, 4) {
		return false
	}
	for path != filepath.Dir(path) {
		if path = filepath.Dir(path); !a.may(path, 1) {
			return false
		}
	}
	return true
}

// may reports whether the account has a bit of the mode: 4 to read, 1 to search.
func (a *Account) may(path string, bit uint32) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true // no owner is known
	}
	mode := uint32(info.Mode().Perm())
	switch {
	case a.UID == 0:
		return true
	case stat.Uid == a.UID:
		return mode&(bit<<6) != 0
	case stat.Gid == a.GID || slices.Contains(a.Groups, stat.Gid):
		return mode&(bit<<3) != 0
	}
	return mode&bit != 0
}
