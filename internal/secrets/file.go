package secrets

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrMissing: there is a database, and not the master key that it belongs to.
var ErrMissing = errors.New("the secret key is missing")

// KeptKey reads the master key at path, or makes it there, unless the SQLite database that it is
// for ("" for none) has something in it already: then a missing key is ErrMissing, wrapped. Of two
// processes that start at once the one that creates the file decides; a half-written file is
// never seen, because it gets its name when it is complete.
func KeptKey(path, database string) ([]byte, error) {
	belongs := HasContent(database) // looked at first: another process makes the key before the database
	key, err := ReadKey(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return key, err
	case belongs:
		return nil, fmt.Errorf(
			"%w: put %s back, from where it is kept with the backups; the sealed contents of %s cannot be opened without it",
			ErrMissing, path, database,
		)
	}
	if err := makeKey(path); err != nil {
		return nil, err
	}
	return ReadKey(path) // of the process that came first
}

// HasContent reports whether there is a file with something in it.
func HasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// ReadKey reads the master key at path. fs.ErrNotExist, wrapped, when there is none.
func ReadKey(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the secret key cannot be read: %w", err)
	}
	key, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}

func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w", err)
	}
	var raw [KeySize]byte
	rand.Read(raw[:])
	err := WriteOnce(path, base64.StdEncoding.EncodeToString(raw[:])+"\n")
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the secret key cannot be stored: %w", err)
	}
	return nil
}

// ParseKey reads a master key: base64 (standard or URL), hex, or 32 and more raw bytes.
func ParseKey(s string) ([]byte, error) {
	s = strings.TrimSpace(s)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(s); err == nil && len(b) >= KeySize {
			return b, nil
		}
	}
	if len(s) >= KeySize {
		return []byte(s), nil
	}
	return nil, fmt.Errorf(
		"a secret key has at least %d bytes, as base64 or hex; make one with: openssl rand -base64 32", KeySize,
	)
}

// WriteOnce creates a private file with its whole content, durably, or fails with
// fs.ErrExist.
func WriteOnce(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(content); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(HandOver(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the name of a new file durable: a key that a power failure takes away
// leaves a database that nothing can read.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" { // which has no such thing
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
