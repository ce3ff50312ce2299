package acme

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Store contains the required verbs of the store.
type Store interface {
	storage.CertificateFiles
	storage.Leases
}

// sealPurpose binds encrypted data to this use. The path of the file binds it to the file.
const sealPurpose = "certificate file"

// maxFiles limits a list. A server has one account and a few certificates of three files each.
const maxFiles = 1000

// files implements certmagic.Storage with the store.
type files struct {
	store  Store
	ring   *secrets.Ring
	now    func() time.Time
	locked locks
}

var _ certmagic.Storage = (*files)(nil)

// Store implements certmagic.Storage.
func (f *files) Store(ctx context.Context, key string, value []byte) error {
	switch {
	case len(key) > storage.MaxCertificateKey:
		return fmt.Errorf("acme: a path of %d bytes", len(key))
	case len(value) > storage.MaxCertificateFile:
		return fmt.Errorf("acme: %s has %d bytes", key, len(value))
	}
	return f.store.PutCertificateFile(ctx, storage.CertificateFile{
		Key: key, Sealed: f.ring.Seal(sealPurpose, value, []byte(key)), ModifiedAt: f.now(),
	})
}

// Load implements certmagic.Storage.
func (f *files) Load(ctx context.Context, key string) ([]byte, error) {
	file, err := f.store.CertificateFile(ctx, key)
	if err != nil {
		return nil, missing(err)
	}
	value, err := f.ring.Open(sealPurpose, file.Sealed, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("acme: %s was sealed under another secret_key: %w", key, err)
	}
	return value, nil
}

// missing turns storage.ErrNotFound into certmagic's fs.ErrNotExist.
func missing(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("acme: %w", fs.ErrNotExist)
	}
	return err
}

// Delete implements certmagic.Storage.
func (f *files) Delete(ctx context.Context, key string) error {
	return f.store.DeleteCertificateFiles(ctx, key)
}

// Exists implements certmagic.Storage.
func (f *files) Exists(ctx context.Context, key string) bool {
	_, err := f.Stat(ctx, key)
	return err == nil
}

// List implements certmagic.Storage.
func (f *files) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	path = strings.TrimSuffix(path, "/")
	below, err := f.store.CertificateFilesBelow(ctx, path, maxFiles)
	if err != nil {
		return nil, err
	}
	if len(below) == 0 && path != "" {
		return nil, fmt.Errorf("acme: %s: %w", path, fs.ErrNotExist)
	}
	var out []string
	seen := make(map[string]bool)
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	root := ""
	if path != "" {
		root = path + "/"
	}
	for _, file := range below {
		names := strings.Split(strings.TrimPrefix(file.Key, root), "/")
		if !recursive {
			add(root + names[0])
			continue
		}
		for i := range names {
			add(root + strings.Join(names[:i+1], "/"))
		}
	}
	return out, nil
}

// Stat implements certmagic.Storage.
func (f *files) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	file, err := f.store.CertificateFile(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{
			Key: key, Modified: file.ModifiedAt, Size: int64(len(file.Sealed)), IsTerminal: true,
		}, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return certmagic.KeyInfo{}, err
	}
	below, err := f.store.CertificateFilesBelow(ctx, key, 1)
	if err == nil && len(below) == 0 {
		err = fmt.Errorf("acme: %s: %w", key, fs.ErrNotExist)
	}
	return certmagic.KeyInfo{Key: key}, err
}
