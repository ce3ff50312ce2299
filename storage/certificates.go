package storage

import (
	"context"
	"time"
)

// CertificateFile is what is kept for the certificates that come by ACME (RFC 8555): the account's key, a
// certificate, its private key, or the answer to a challenge that is under way.
type CertificateFile struct {
	Key        string // a path: names with "/" between them
	Sealed     []byte
	ModifiedAt time.Time
}

// The bounds on what is kept for certificates.
const (
	MaxCertificateKey  = 512 // bytes of a path
	MaxCertificateFile = 256 << 10
)

// CertificateFiles holds what all replicas need to serve certificates that one of them has obtained.
// They are few, and a key is not below another.
type CertificateFiles interface {
	// PutCertificateFile stores a file in place of the one with its key.
	PutCertificateFile(ctx context.Context, f CertificateFile) error
	// CertificateFile returns the file with a key, or ErrNotFound.
	CertificateFile(ctx context.Context, key string) (CertificateFile, error)
	// CertificateFilesBelow returns up to limit files whose keys begin with the path and "/", by key and
	// without their contents; all for the path "".
	CertificateFilesBelow(ctx context.Context, path string, limit int) ([]CertificateFile, error)
	// DeleteCertificateFiles removes the file with a key, and those below it.
	DeleteCertificateFiles(ctx context.Context, key string) error
	// ResealCertificateFile replaces the content of a file, if it still is old: under another master key it
	// is the same. ErrSpent when it is not, or when there is no such file.
	ResealCertificateFile(ctx context.Context, key string, old, sealed []byte) error
}
