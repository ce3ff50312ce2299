package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// exposure is what is wrong with who may read or write a file that a master key is in.
type exposure struct {
	wrong    string // "": nothing
	remedy   string // the command that mends it
	tolerate bool   // it is worth a warning only
}

// guardKeys refuses to serve with a master key that another user can have read or
// replaced, as ssh does with a private key, before anything is made.
func (a *app) guardKeys() error {
	for _, file := range a.keyFiles() {
		e := a.exposed(file, os.Getuid())
		if e.wrong != "" && !e.tolerate {
			return fmt.Errorf("the secret key in %s is not secret: %s; with it, anybody can make tokens; see who had access, then: %s "+
				"(to change the key afterwards, see: mcp-authd secret rotate --help)", file, e.wrong, e.remedy)
		}
		a.warnOfKey(file, e)
	}
	return nil
}

// warnOfKeys tells of the same, for commands that run for a moment, be it as root.
func (a *app) warnOfKeys() {
	for _, file := range a.keyFiles() {
		a.warnOfKey(file, a.exposed(file, anyUser))
	}
}

func (a *app) warnOfKey(file string, e exposure) {
	if e.wrong != "" {
		a.log.Warn("the secret key may not be secret: "+e.wrong, "file", file, "remedy", e.remedy)
	}
}

// keyFiles are the files that the master keys are read from.
func (a *app) keyFiles() []string {
	var files []string
	given := a.config.SecretFiles()
	for _, key := range []string{"$MCP_AUTHD_SECRET_KEY_FILE", "$MCP_AUTHD_SECRET_KEY_OLD_FILE"} {
		if file := given[key]; file != "" {
			files = append(files, file)
		}
	}
	if a.config.SecretKey != "" {
		return files
	}
	if file := a.credential(); file != "" {
		return append(files, file)
	}
	if !a.config.Postgres() {
		files = append(files, a.keyPath())
	}
	return files
}

// credential is the file in which systemd hands over a master key, "" when there is none.
func (a *app) credential() string {
	dir := lookup(a.std.environ, "CREDENTIALS_DIRECTORY")
	if dir == "" {
		return ""
	}
	file := filepath.Join(dir, "secret_key")
	if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) == "" {
		return ""
	}
	return file
}

// anyUser stands for the user that the server runs as where that is not known.
const anyUser = -1

// exposed looks at one file for a server that runs as a user. A file that cannot be looked
// at is left to those that read it.
func (a *app) exposed(file string, uid int) exposure {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return exposure{}
	}
	owner, ok := ownerOf(info)
	if !ok {
		return exposure{} // this system has other means
	}
	if uid == anyUser {
		uid = owner
	}
	return place{
		uid:     uid,
		mounted: mounted(file),
		pod:     lookup(a.std.environ, "KUBERNETES_SERVICE_HOST") != "",
	}.judge(file, info.Mode().Perm(), owner)
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
func (p place) judge(file string, mode fs.FileMode, owner int) exposure {
	private := "chmod 600 " + file
	if owner != p.uid {
		private = "chmod 640 " + file // or the server could not read it
	}
	switch {
	case mode&0o002 != 0:
		return exposure{wrong: fmt.Sprintf("every user can write to it (%s)", mode), remedy: private}
	case mode&0o007 != 0:
		return exposure{wrong: fmt.Sprintf("every user can read it (%s)", mode), remedy: private, tolerate: p.mounted}
	case !slices.Contains([]int{0, p.uid}, owner):
		return exposure{
			wrong:    fmt.Sprintf("it belongs to uid %d, and this runs as uid %d", owner, p.uid),
			remedy:   fmt.Sprintf("chown %d %s", p.uid, file),
			tolerate: p.mounted,
		}
	case mode&0o020 != 0:
		return exposure{wrong: fmt.Sprintf("its group can write to it (%s)", mode), remedy: private, tolerate: p.pod}
	case mode&0o040 != 0 && owner == p.uid: // root hands over what it owns by the group
		return exposure{wrong: fmt.Sprintf("its group can read it (%s)", mode), remedy: private, tolerate: true}
	}
	return exposure{}
}
