package acme

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/caddyserver/certmagic"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Kept returns the stored certificate of a domain from the authority of directory. If there is
// none, the error wraps storage.ErrNotFound.
func Kept(
	ctx context.Context, store storage.CertificateFiles, ring *secrets.Ring, directory, domain string,
) (*x509.Certificate, error) {
	issuer := (&certmagic.ACMEIssuer{CA: directory}).IssuerKey()
	key := certmagic.StorageKeys.SiteCert(issuer, domain)
	file, err := store.CertificateFile(ctx, key)
	if err != nil {
		return nil, err
	}
	text, err := ring.Open(sealPurpose, file.Sealed, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("acme: %s was sealed under another secret_key: %w", key, err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("acme: %s must be a certificate in PEM", key)
	}
	return x509.ParseCertificate(block.Bytes)
}
