package storage

import (
	"context"
	"time"
)

// CertificateFile is one stored item for ACME certificates (RFC 8555): an account key, a
// certificate, a private key, or the response to a pending challenge.
type CertificateFile struct {
	Key        string // a path: names with "/" between them
	Sealed     []byte
	ModifiedAt time.Time
}

// The limits on stored certificate files.
const (
	MaxCertificateKey  = 512 // bytes of a path
	MaxCertificateFile = 256 << 10
)

// CertificateFiles stores the data that all replicas need to serve certificates obtained by one of
// them. There are few files, and no key is below another.
type CertificateFiles interface {
	// PutCertificateFile stores a file. It replaces a file with the same key.
	PutCertificateFile(ctx context.Context, f CertificateFile) error
	// CertificateFile returns the file with a key, or ErrNotFound.
	CertificateFile(ctx context.Context, key string) (CertificateFile, error)
	// CertificateFilesBelow returns up to limit files whose keys begin with path and "/", by key
	// and without their contents. The path "" matches all files.
	CertificateFilesBelow(ctx context.Context, path string, limit int) ([]CertificateFile, error)
	// DeleteCertificateFiles removes the file with a key, and the files below it.
	DeleteCertificateFiles(ctx context.Context, key string) error
	// ResealCertificateFile replaces the content of a file if it still equals old, to change the
	// master key. It returns ErrSpent if it does not, or if the file does not exist.
	ResealCertificateFile(ctx context.Context, key string, old, sealed []byte) error
}
