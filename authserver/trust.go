package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// Trust verifies assertions of trusted issuers (RFC 7523). trust.Issuers implements it.
type Trust interface {
	// Verify returns the content of a verified assertion. It returns a *trust.Refusal if the
	// assertion is not accepted; any other error is from the store or the context.
	Verify(ctx context.Context, raw string) (trust.Assertion, error)
	// Offers reports whether an issuer is trusted for ID-JAGs, and whether one is trusted for
	// workloads.
	Offers(ctx context.Context) (enterprise, workload bool, err error)
	// IssuerOf returns the issuer of a trust entry, for the user whose access depends on it, or ""
	// if the entry no longer exists.
	IssuerOf(ctx context.Context, entryID string) (string, error)
}
