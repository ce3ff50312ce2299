package acme

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Reseal encrypts the files with the primary master key, and returns how many had another. A file
// that changes meanwhile comes from a server that knows the primary key.
func Reseal(ctx context.Context, store storage.CertificateFiles, ring *secrets.Ring) (n int, err error) {
	all, err := store.CertificateFilesBelow(ctx, "", maxFiles)
	if err != nil {
		return 0, err
	}
	for _, listed := range all {
		file, err := store.CertificateFile(ctx, listed.Key)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return n, err
		}
		sealed, changed, err := ring.Reseal(sealPurpose, file.Sealed, []byte(file.Key))
		if err != nil {
			return n, fmt.Errorf("acme: %s was sealed under another secret_key: %w", file.Key, err)
		}
		if !changed {
			continue
		}
		err = store.ResealCertificateFile(ctx, file.Key, file.Sealed, sealed)
		if err != nil && !errors.Is(err, storage.ErrSpent) {
			return n, err
		}
		n++
	}
	return n, nil
}
