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

// ErrMissing is returned if a database exists without its master key.
var ErrMissing = errors.New("the secret key is missing")

// KeptKey reads the master key at path, or creates it. If the key is missing but its SQLite
// database ("" for none) has content, KeptKey returns ErrMissing, wrapped. If two processes start
// concurrently, the first to create the file wins. The file gets its name when it is complete, so
// nobody reads a partial key.
func KeptKey(path, database string) ([]byte, error) {
	belongs := HasContent(database) // checked first, because another process creates the database after the key
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
	return ReadKey(path) // the key of the process that won
}

// HasContent reports whether a file exists and is not empty.
func HasContent(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// ReadKey reads the master key at path. It returns fs.ErrNotExist, wrapped, if the file is missing.
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

// ParseKey parses a master key: base64 (standard or URL), hex, or at least 32 raw bytes.
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

// WriteOnce creates a private file with its content, durably. It fails with fs.ErrExist if the file
// exists.
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

// syncDirectory makes the name of a new file durable. If a key were lost in a power failure, nobody
// could read the database.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" { // which does not support it
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
