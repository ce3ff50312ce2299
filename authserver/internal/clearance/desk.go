// Package clearance lets users approve single tool calls (RS-217): the request of a resource
// server, the content of the approval page, and the decision. It does not use HTTP.
//
//	arguments.go  strict parsing of a call's arguments, and their digest
//	show.go       arguments as shown to users, with all characters visible
//	desk.go       requests of resource servers
//	decide.go     decisions of users
package clearance

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Store lists the storage methods that a Desk uses.
type Store interface {
	storage.Clearances
	User(ctx context.Context, id string) (storage.User, error)
}

// Desk takes requests for tool call approvals, and the decisions about them.
type Desk struct {
	Store  Store
	Ring   *secrets.Ring
	Issuer string
	// ACRs lists the authentication context classes that users can reach here, weakest first.
	ACRs    []string
	Factors entry.SecondFactors // nil: a second factor is not required
	Audit   *audit.Recorder
	Now     func() time.Time
}

// Path is the path of the approval pages below the issuer. The approval's id follows.
const Path = "/clearance/"

// sealing is the purpose for sealing arguments.
const sealing = "arguments of a clearance"

// Limits of a request, in addition to the limits of its arguments.
const (
	maxTool      = 256 // bytes
	maxApprovers = 32
	maxName      = 64 // bytes
	maxACR       = 8
	fullWait     = 30 * time.Second // pause before another try if too many wait
)

// Caller is the source of a tool call, from the token of the call.
type Caller struct {
	UserID   string // "": a machine
	ClientID string
	GrantID  string
	NodeID   string
	Resource string // canonical
}

// Ask answers a request for a tool call approval. Its error is an *oauth.Error.
func (d *Desk) Ask(ctx context.Context, of Caller, demand oauth.ClearanceDemand) (oauth.Clearance, error) {
	arguments, err := ParseArguments(demand.Arguments)
	if err != nil {
		return oauth.Clearance{}, unshowable(err)
	}
	terms, err := d.terms(of, demand)
	if err != nil {
		return oauth.Clearance{}, err
	}
	terms.Digest = Digest(of.Resource, demand.Tool, arguments)
	c := storage.Clearance{ID: secrets.Token("clr_"), ClearanceTerms: terms, State: storage.ClearanceWaits}
	c.CreatedAt = d.Now()
	c.ExpiresAt = c.CreatedAt.Add(oauth.ClearanceLifetime)
	c.Sealed = d.Ring.Seal(sealing, demand.Arguments, []byte(c.ID))
	got, err := d.Store.AskClearance(ctx, c)
	switch {
	case errors.Is(err, storage.ErrRevoked):
		return oauth.Clearance{}, oauth.NewError(oauth.InvalidGrant, "The token is no longer active.").Because(err)
	case errors.Is(err, storage.ErrFull):
		full := oauth.NewError(oauth.SlowDown, "Too many calls wait for a clearance. Please wait.").Because(err)
		full.RetryAfter = fullWait
		return oauth.Clearance{}, full
	case err != nil:
		return oauth.Clearance{}, refusal.Unavailable(err)
	}
	switch {
	case got.State == storage.ClearanceSpent:
		d.record(ctx, audit.ClearanceSpent, got)
	case got.ID == c.ID:
		d.record(ctx, audit.ClearanceAsked, got)
	}
	return d.answer(got), nil
}

func (d *Desk) answer(c storage.Clearance) oauth.Clearance {
	out := oauth.Clearance{
		ID:      c.ID,
		Cleared: c.State == storage.ClearanceSpent,
		Refused: c.State == storage.ClearanceRefused,
		Expires: c.ExpiresAt,
	}
	if !out.Cleared && !out.Refused {
		out.URL = d.Issuer + Path + url.PathEscape(c.ID)
	}
	return out
}

// unshowable returns the error for arguments that cannot be shown.
func unshowable(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return oauth.NewError(oauth.InvalidRequest,
			"The arguments are too long, too many or too deep for a person to be shown all of them.").Because(err)
	}
	return oauth.NewError(oauth.InvalidRequest,
		"The arguments must be a JSON object that can be read in one way only.").Because(err)
}

// terms returns the terms of a request, without the digest.
func (d *Desk) terms(of Caller, demand oauth.ClearanceDemand) (storage.ClearanceTerms, error) {
	t := storage.ClearanceTerms{
		UserID:   of.UserID,
		ClientID: of.ClientID,
		GrantID:  of.GrantID,
		NodeID:   of.NodeID,
		Resource: of.Resource,
		Tool:     demand.Tool,
		By:       demand.By,
		ACR:      slices.Sorted(slices.Values(demand.ACR)),
		MaxAge:   demand.MaxAge.Truncate(time.Second),
	}
	if t.By == "" {
		t.By = oauth.ClearanceByPerson
	}
	for _, name := range demand.Approvers {
		t.Approvers = append(t.Approvers, strings.ToLower(name))
	}
	slices.Sort(t.Approvers)
	t.Approvers = slices.Compact(t.Approvers)
	refuse := func(why string) (storage.ClearanceTerms, error) {
		return t, oauth.NewError(oauth.InvalidRequest, why)
	}
	switch {
	case t.Tool == "" || len(t.Tool) > maxTool || !utf8.ValidString(t.Tool),
		strings.ContainsFunc(t.Tool, unicode.IsControl): // not valid in a name, and PostgreSQL cannot store all of them
		return refuse("The name of the tool is missing, or cannot be shown.")
	case t.By != oauth.ClearanceByPerson && t.By != oauth.ClearanceByOther:
		return refuse("Who gives the clearance is 'person' or 'other'.")
	case t.By == oauth.ClearanceByPerson && t.UserID == "":
		return refuse("There is no person behind the token: only another one can give this clearance.")
	case t.By == oauth.ClearanceByPerson && len(t.Approvers) > 0:
		return refuse("Approvers are for clearances of another person.")
	case len(t.Approvers) > maxApprovers || slices.ContainsFunc(t.Approvers, notAName):
		return refuse("The approvers are too many, or one of them is no name of an account.")
	case demand.MaxAge < 0:
		return refuse("The maximum age must not be negative.")
	case len(t.ACR) > maxACR || len(t.ACR) > 0 && d.acr(t.ACR) == "":
		return refuse("This server has none of the requested acr_values.")
	}
	return t, nil
}

// notAName reports whether a string cannot be an account name (see package users): account names
// have no spaces and line feeds.
func notAName(s string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	return s == "" || len(s) > maxName || strings.ContainsFunc(s, odd)
}

// acr returns the class that an approver has to reach: the weakest supported one, because stronger
// classes include it. It returns "" if this server supports none.
func (d *Desk) acr(wanted []string) string {
	for _, acr := range d.ACRs {
		if slices.Contains(wanted, acr) {
			return acr
		}
	}
	return ""
}

func (d *Desk) record(ctx context.Context, event string, c storage.Clearance) {
	d.Audit.Record(ctx, event, slog.String("clearance", c.ID), slog.String("user", c.UserID),
		slog.String("client_id", c.ClientID), slog.String("grant", c.GrantID), slog.String("node", c.NodeID),
		slog.String("resource", c.Resource), slog.String("tool", Plain(c.Tool)),
		slog.String("digest", hex.EncodeToString(c.Digest[:])), slog.String("giver", c.GiverID))
}
