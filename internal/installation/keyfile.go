package installation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// GuardKeys refuses to serve with a master key that another user may have read or replaced, before
// anything is created.
func (in *Installation) GuardKeys() error {
	for _, file := range in.KeyFiles() {
		e, err := secrets.Guard(file, in.inPod())
		if err != nil {
			return fmt.Errorf("%w (to change the key afterwards, see: mcp-authd secret rotate --help)", err)
		}
		in.warnOfKey(file, e)
	}
	return in.guardData()
}

// guardData refuses to serve with data that every user can change, or a database that every user
// can read.
func (in *Installation) guardData() error {
	if in.Config.Postgres() {
		return nil
	}
	database := in.Config.SQLitePath()
	for _, path := range []string{filepath.Dir(database), database, database + "-wal", database + "-shm"} {
		e := secrets.Data(path, in.inPod() || Sheltered(path))
		switch {
		case e.Wrong == "":
		case e.Tolerate:
			in.Log.Warn("only a directory above or the container keeps others from the data: "+e.Wrong, "path", path,
				"remedy", e.Remedy)
		default:
			return fmt.Errorf("%s is open to other users of this machine: %s; see who had access, then: %s",
				path, e.Wrong, e.Remedy)
		}
	}
	return nil
}

// warnOfKeys warns of the same for short commands, including commands of root.
func (in *Installation) warnOfKeys() {
	for _, file := range in.KeyFiles() {
		in.warnOfKey(file, in.Exposed(file))
	}
}

func (in *Installation) warnOfKey(file string, e secrets.Exposure) {
	if e.Wrong != "" {
		in.Log.Warn("the secret key may not be secret: "+e.Wrong, "file", file, "remedy", e.Remedy)
	}
}

// WarnOfTLSKey warns of a TLS key, or a secret for DNS records, that others can read. With it, they
// could impersonate this server.
func (in *Installation) WarnOfTLSKey() {
	dns := in.Config.TLS.ACME.DNS.SecretFile
	for what, file := range map[string]string{"tls.key": in.Config.TLS.Key, "tls.acme.dns.secret_file": dns} {
		if file == "" {
			continue
		}
		if e := in.Exposed(file); e.Wrong != "" && !e.Tolerate {
			in.Log.Warn(what+" may not be secret: "+e.Wrong, "file", file, "remedy", e.Remedy)
		}
	}
}

// Exposed checks a file of master keys for a server that runs as its owner.
func (in *Installation) Exposed(file string) secrets.Exposure {
	return secrets.Exposed(file, secrets.AnyUser, in.inPod())
}

func (in *Installation) inPod() bool { return Lookup(in.host.Environ, "KUBERNETES_SERVICE_HOST") != "" }

// KeyFiles returns the files that contain the master keys.
func (in *Installation) KeyFiles() []string {
	var files []string
	given := in.Config.SecretFiles()
	for _, key := range []string{"$MCP_AUTHD_SECRET_KEY_FILE", "$MCP_AUTHD_SECRET_KEY_OLD_FILE"} {
		if file := given[key]; file != "" {
			files = append(files, file)
		}
	}
	if in.Config.SecretKey != "" {
		return files
	}
	if file := in.credential(); file != "" {
		return append(files, file)
	}
	if !in.Config.Postgres() {
		files = append(files, in.KeyPath())
	}
	return files
}

// credential returns the file with systemd's credential for the master key, or "". Commands of root
// get no credential. They read the file that the packaged unit uses: with
// /etc/mcp-authd/config.yaml, /etc/credstore/mcp-authd.secret_key.
func (in *Installation) credential() string {
	dir := Lookup(in.host.Environ, "CREDENTIALS_DIRECTORY")
	file := filepath.Join(dir, "secret_key")
	if dir == "" {
		file = in.Config.Beside("credstore/mcp-authd.secret_key")
	}
	if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) == "" {
		return ""
	}
	return file
}

// Sheltered reports whether a parent directory keeps other users out.
func Sheltered(path string) bool {
	path, err := filepath.Abs(path)
	for err == nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, statErr := os.Stat(path)
		if statErr == nil && info.Mode().Perm()&0o001 == 0 {
			return true
		}
		err = statErr
	}
	return false
}

// HasKey reports whether a master key exists, so that Create makes none.
func (in *Installation) HasKey() bool {
	if in.Config.SecretKey != "" {
		return true
	}
	_, err := os.Stat(in.KeyPath())
	return err == nil || in.credential() != ""
}
