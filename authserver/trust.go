package authserver

import (
	"context"

	"github.com/mcp-authd/mcp-authd/trust"
)

// Trust verifies assertions of issuers that the operator trusts (RFC 7523). trust.Issuers is the usual
// one.
type Trust interface {
	// Verify returns what an assertion says, if it is believed. A *trust.Refusal says why it is not; any
	// other error is that of the store or the context.
	Verify(ctx context.Context, raw string) (trust.Assertion, error)
	// Offers reports whether any issuer is trusted for ID-JAGs, and for workloads.
	Offers(ctx context.Context) (enterprise, workload bool, err error)
	// IssuerOf returns the issuer of a trust entry, for the person whose access rests on it; "" when there
	// is no such entry any more.
	IssuerOf(ctx context.Context, entryID string) (string, error)
}
