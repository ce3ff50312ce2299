package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// NewTrust describes a trusted issuer. Values that its preset sets can be omitted.
type NewTrust struct {
	ID     string            `json:"id" jsonschema:"the id of the trust entry"`
	Kind   storage.TrustKind `json:"kind,omitempty" jsonschema:"enterprise or workload; default as in the preset"`
	Issuer string            `json:"issuer,omitempty" jsonschema:"iss of its assertions; default as in the preset"`
	storage.TrustRules
	MaxTTL storage.Age `json:"max_ttl,omitzero" jsonschema:"maximum lifetime of an assertion and of its token, such as 1h"`
}

// TrustAdded is an added entry, with warnings about its rules.
type TrustAdded struct {
	TrustEntry
	Warnings []string `json:"warnings,omitempty" jsonschema:"rules that probably admit too much"`
}

// AssertionText is an assertion to test.
type AssertionText struct {
	Assertion string `json:"assertion" secret:"typed" jsonschema:"the assertion, a JWT; it is not stored, and never shown"`
}

// AssertionReport is the result of testing an assertion against every rule. It contains only claims
// that rules name, and never the assertion.
type AssertionReport struct {
	Accepted bool             `json:"accepted"`
	Entry    string           `json:"entry,omitempty" jsonschema:"the trust entry that would accept it"`
	Kind     trust.Kind       `json:"kind,omitempty" jsonschema:"kind of that entry"`
	Subject  string           `json:"subject,omitempty"`
	Name     string           `json:"name,omitempty" jsonschema:"name of the workload"`
	Refused  string           `json:"refused,omitempty" jsonschema:"why it would be refused"`
	Code     string           `json:"error,omitempty" jsonschema:"error of the token endpoint"`
	Entries  []AssertionEntry `json:"entries" jsonschema:"the trust entries in the order of use"`
}

// AssertionEntry is the result for the rules of one entry.
type AssertionEntry struct {
	Entry string              `json:"entry"`
	Kind  trust.Kind          `json:"kind"`
	Fits  bool                `json:"fits"`
	Rules []trust.RuleVerdict `json:"rules"`
}

// maxAssertion limits an assertion, in bytes.
const maxAssertion = 64 << 10

// Operations that add an entry or test an assertion.
var (
	TrustAdd = define(Spec{
		Name: "trust add", Method: "POST", Path: "/trust", Fresh: true, Summary: "Add a trusted issuer",
		Details: "Adds a trust entry: it sets the assertions of an issuer that are accepted, and their users, MCP\n" +
			"servers and scopes. Running servers see it within seconds. Several entries can have the same issuer:\n" +
			"the first entry whose rules all match counts. A preset describes a platform, and its parameters\n" +
			"select the programs on it.",
	}, (*Service).addTrust)
	TrustTest = define(Spec{
		Name: "trust test", Method: "POST", Path: "/trust/test", Roles: reading, Reads: true,
		Summary: "Show for each trust entry and rule why an assertion matches or does not",
		Details: "Checks an assertion against every rule of every trust entry. It issues no token and does not use the\n" +
			"assertion up. The assertion is never shown. The rest of a token request, such as its client and\n" +
			"resource, is not checked.",
	}, (*Service).testTrust)
)

// far reports whether the caller may be on another machine.
func far(ctx context.Context) bool {
	_, ok := ctx.Value(actorKey{}).(Actor)
	return ok
}

func (s *Service) addTrust(ctx context.Context, in NewTrust) (TrustAdded, error) {
	e := storage.TrustEntry{
		ID: in.ID, Kind: in.Kind, Issuer: in.Issuer, TrustRules: in.TrustRules,
		CreatedAt: s.Now().UTC().Truncate(time.Millisecond),
	}
	e.MaxTTL = time.Duration(in.MaxTTL)
	if far(ctx) && (e.JWKSFile != "" || e.CAFile != "" || e.TokenFile != "") {
		// token_file is sent to jwks_url, so the caller could make the server send any file to
		// anyone
		return TrustAdded{}, fault(ErrInvalid, "jwks_file, ca_file and token_file name files of the server: add such an "+
			"entry at the server, or in its configuration")
	}
	full, err := trust.Check(e)
	if err != nil {
		return TrustAdded{}, fault(ErrInvalid, "%v; nothing was changed", err)
	}
	e.Kind, e.Issuer = full.Kind, full.Issuer
	all, err := s.TrustEntries(ctx)
	if err != nil {
		return TrustAdded{}, err
	}
	for _, other := range all {
		if other.ID == e.ID {
			return TrustAdded{}, fault(ErrConflict, "there is a trust entry %s already; nothing was changed", e.ID)
		}
	}
	us, err := s.KnownIssuer(ctx)
	if err != nil {
		return TrustAdded{}, err
	}
	if err := trust.Fits(us, all, e); err != nil {
		return TrustAdded{}, fault(ErrInvalid, "%v; nothing was changed", err)
	}
	switch err := s.Store.AddTrust(ctx, e); {
	case errors.Is(err, storage.ErrExists):
		return TrustAdded{}, fault(ErrConflict,
			"there is a trust entry %s already, or the mark of one; nothing was changed", e.ID)
	case err != nil:
		return TrustAdded{}, err
	}
	s.Audit.Record(ctx, audit.TrustChanged, slog.String("trust", e.ID), slog.String("what", "added"))
	return TrustAdded{TrustOf(e), trust.Warnings(e)}, nil
}

func (s *Service) testTrust(ctx context.Context, in AssertionText) (AssertionReport, error) {
	if len(in.Assertion) > maxAssertion {
		return AssertionReport{}, fault(ErrInvalid, "an assertion may have %d bytes at most", maxAssertion)
	}
	us, err := s.KnownIssuer(ctx)
	if err != nil {
		return AssertionReport{}, err
	}
	issuers, err := s.Issuers(us)
	if err != nil {
		return AssertionReport{}, err
	}
	r, err := issuers.Explain(ctx, in.Assertion)
	out := AssertionReport{
		Accepted: r.Accepted,
		Entry:    r.Entry,
		Kind:     r.Kind,
		Subject:  r.Subject,
		Name:     r.Name,
		Refused:  r.Refused,
		Code:     r.Code,
		Entries:  make([]AssertionEntry, 0, len(r.Entries)),
	}
	for _, e := range r.Entries {
		out.Entries = append(out.Entries, AssertionEntry(e))
	}
	return out, err
}
