// Package clearance has people give their permission for single tool calls (RS-217): what a resource server asks
// for, what a person is shown of it, and what they say. It knows no HTTP.
//
//	arguments.go  the arguments of a call: read strictly, and their digest
//	show.go       the same for people, with everything in them visible
//	desk.go       a resource server asks
//	decide.go     a person decides
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

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Store is what a Desk needs of the store.
type Store interface {
	storage.Clearances
	User(ctx context.Context, id string) (storage.User, error)
}

// Desk is where clearances are asked for, and decided.
type Desk struct {
	Store  Store
	Ring   *secrets.Ring
	Issuer string
	// ACRs are the authentication context classes that people can reach here, the weakest first.
	ACRs    []string
	Factors entry.SecondFactors // nil: a second factor is required of no person
	Audit   *audit.Recorder
	Now     func() time.Time
}

// Path is where the pages of clearances are, below the path of the issuer. Their ids follow.
const Path = "/clearance/"

// sealing is what the arguments of a clearance are sealed for.
const sealing = "arguments of a clearance"

// The bounds of a demand, beside those of its arguments.
const (
	maxTool      = 256 // bytes
	maxApprovers = 32
	maxName      = 64 // bytes
	maxACR       = 8
	fullWait     = 30 * time.Second // until a client may ask again when too many wait
)

// Caller is whose call a clearance is for, as the token says with which it was made.
type Caller struct {
	UserID   string // "": a machine
	ClientID string
	GrantID  string
	NodeID   string
	Resource string // canonical
}

// Ask answers a demand. Its error is an *oauth.Error.
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

// unshowable is why arguments are not shown to anyone.
func unshowable(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return oauth.NewError(oauth.InvalidRequest,
			"The arguments are too long, too many or too deep for a person to be shown all of them.").Because(err)
	}
	return oauth.NewError(oauth.InvalidRequest,
		"The arguments must be a JSON object that can be read in one way only.").Because(err)
}

// terms are those of a demand, but for the digest.
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
		strings.ContainsFunc(t.Tool, unicode.IsControl): // no name has one, and PostgreSQL cannot hold them all
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

// notAName reports what is no name of an account (see package users): none has a space or a line feed.
func notAName(s string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	return s == "" || len(s) > maxName || strings.ContainsFunc(s, odd)
}

// acr is the class that a person has to reach: the weakest that is there, since each stronger one includes
// it. "": none of them can be reached.
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
