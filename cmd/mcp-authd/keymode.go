package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// guardKeys refuses to serve with a master key that another user may have read or replaced, before
// anything is created.
func (a *app) guardKeys() error {
	for _, file := range a.keyFiles() {
		e, err := secrets.Guard(file, a.inPod())
		if err != nil {
			return fmt.Errorf("%w (to change the key afterwards, see: mcp-authd secret rotate --help)", err)
		}
		a.warnOfKey(file, e)
	}
	return a.guardData()
}

// guardData refuses to serve with data that every user can change, or a database that every user
// can read.
func (a *app) guardData() error {
	if a.config.Postgres() {
		return nil
	}
	database := a.config.SQLitePath()
	for _, path := range []string{filepath.Dir(database), database, database + "-wal", database + "-shm"} {
		e := secrets.Data(path, a.inPod() || sheltered(path))
		switch {
		case e.Wrong == "":
		case e.Tolerate:
			a.log.Warn("only a directory above or the container keeps others from the data: "+e.Wrong, "path", path,
				"remedy", e.Remedy)
		default:
			return fmt.Errorf("%s is open to other users of this machine: %s; see who had access, then: %s",
				path, e.Wrong, e.Remedy)
		}
	}
	return nil
}

// warnOfKeys warns of the same for short commands, including commands of root.
func (a *app) warnOfKeys() {
	for _, file := range a.keyFiles() {
		a.warnOfKey(file, a.exposed(file))
	}
}

func (a *app) warnOfKey(file string, e secrets.Exposure) {
	if e.Wrong != "" {
		a.log.Warn("the secret key may not be secret: "+e.Wrong, "file", file, "remedy", e.Remedy)
	}
}

// warnOfTLSKey warns of a TLS key, or a secret for DNS records, that others can read. With it, they
// could impersonate this server.
func (a *app) warnOfTLSKey() {
	dns := a.config.TLS.ACME.DNS.SecretFile
	for what, file := range map[string]string{"tls.key": a.config.TLS.Key, "tls.acme.dns.secret_file": dns} {
		if file == "" {
			continue
		}
		if e := a.exposed(file); e.Wrong != "" && !e.Tolerate {
			a.log.Warn(what+" may not be secret: "+e.Wrong, "file", file, "remedy", e.Remedy)
		}
	}
}

// exposed checks a file of master keys for a server that runs as its owner.
func (a *app) exposed(file string) secrets.Exposure {
	return secrets.Exposed(file, secrets.AnyUser, a.inPod())
}

func (a *app) inPod() bool { return lookup(a.std.environ, "KUBERNETES_SERVICE_HOST") != "" }

// keyFiles returns the files that contain the master keys.
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

// credential returns the file with systemd's credential for the master key, or "". Commands of root
// get no credential. They read the file that the packaged unit uses: with
// /etc/mcp-authd/config.yaml, /etc/credstore/mcp-authd.secret_key.
func (a *app) credential() string {
	dir := lookup(a.std.environ, "CREDENTIALS_DIRECTORY")
	file := filepath.Join(dir, "secret_key")
	if dir == "" {
		file = a.config.Beside("credstore/mcp-authd.secret_key")
	}
	if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) == "" {
		return ""
	}
	return file
}
