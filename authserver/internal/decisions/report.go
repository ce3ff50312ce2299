package decisions

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/reference"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	maxClients = 10_000 // clients whose reports are counted
	// oldest is the maximum age of a reported event; older events get this age.
	oldest = time.Hour
	// remembered is how long a repeated report is recognized.
	remembered = 24 * time.Hour
)

var (
	// reportRate limits the reports of one client, and tellRate their entries.
	reportRate = bounded.PerSecond(2, 60)
	tellRate   = bounded.PerSecond(100, 5000)
)

var (
	errNoReport  = oauth.NewError(oauth.InvalidRequest, "The parameter 'report' must be a report.")
	errTooMuch   = oauth.NewError(oauth.InvalidRequest, "A report must have at most 100 decisions and calls.")
	errNotServer = oauth.NewError(oauth.UnauthorizedClient,
		"Reports are taken from clients to which the operator has assigned an MCP server.")
)

var (
	reportID = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)
	word     = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	tokenID  = regexp.MustCompile(`^[A-Za-z0-9_.~-]{0,100}$`)
)

const maxTool = 256 // bytes of a tool's name

// Report records a client's report: decisions and calls of resource servers that the operator has
// assigned to the client, as far as their tokens confirm them. The records name the reporting
// client. A repeated report gets the same answer and counts once.
func (t *Taker) Report(ctx context.Context, client storage.Client, text string) (oauth.Reported, error) {
	var r oauth.Report
	switch {
	case !client.Operated() || client.Public() || len(client.Resources) == 0:
		return oauth.Reported{}, errNotServer
	case json.Unmarshal([]byte(text), &r) != nil, !reportID.MatchString(r.ID):
		return oauth.Reported{}, errNoReport
	case len(r.Decisions)+len(r.Calls) > oauth.MaxReported:
		return oauth.Reported{}, errTooMuch
	}
	wait := t.reports.Take(bounded.Draw[string]{Key: client.ID, Rate: reportRate},
		bounded.Draw[string]{Key: "in " + client.ID, Rate: tellRate, N: len(r.Decisions) + len(r.Calls)})
	if wait > 0 {
		e := oauth.NewError(oauth.SlowDown, "Too many reports of this client. Please wait.")
		e.RetryAfter = wait
		return oauth.Reported{}, e
	}
	found, err := t.read(ctx, client, r)
	if err != nil {
		return oauth.Reported{}, err
	}
	// If the store may not have recorded the report's id, the report is accepted: a duplicate audit
	// entry is better than none.
	err = t.c.Store.Spend(ctx, "report", client.ID+" "+r.ID, t.c.Now().Add(remembered))
	if errors.Is(err, storage.ErrSpent) {
		return oauth.Reported{Repeated: true}, nil
	}
	if r.Lost > 0 {
		t.c.Log.WarnContext(ctx, "a resource server has lost some of what it had to report",
			slog.String("client_id", client.ID), slog.Int64("lost", r.Lost))
	}
	for _, d := range found.decisions {
		t.c.Attempts.Reported(client.ID, d.Decision, d.presented, t.refreshed(d.presented.Keys.Grant, d.issued))
	}
	// An entry describes the call, not the resource server's reporting request. Missing facts of
	// the call are not taken from that request.
	ctx = request.Without().Within(ctx)
	for _, c := range found.calls {
		t.keep(ctx, c, slog.String("reported_by", client.ID))
	}
	taken := len(found.decisions) + len(found.calls)
	return oauth.Reported{Taken: taken, Refused: len(r.Decisions) + len(r.Calls) - taken}, nil
}

// reported is a decision with the known facts about its token.
type reported struct {
	oauth.Decision
	presented attempt.Presented
	issued    time.Time
}

// findings are the accepted parts of a report.
type findings struct {
	decisions []reported
	calls     []oauth.Call
}

// reading is a report that is compared with stored data.
type reading struct {
	*Taker
	client storage.Client
	sent   time.Time
	serves map[string]bool           // by resource
	grants map[string]*storage.Grant // by id; nil: not found
}

func (t *Taker) read(ctx context.Context, client storage.Client, r oauth.Report) (out findings, err error) {
	in := &reading{t, client, r.SentAt, map[string]bool{}, map[string]*storage.Grant{}}
	for _, d := range r.Decisions {
		found, ok, err := in.decision(ctx, d)
		if err != nil {
			return out, refusal.Unavailable(err)
		}
		if ok {
			out.decisions = append(out.decisions, found)
		}
	}
	for _, c := range r.Calls {
		ok, err := in.call(ctx, &c)
		if err != nil {
			return out, refusal.Unavailable(err)
		}
		if ok {
			out.calls = append(out.calls, c)
		}
	}
	return out, nil
}

// decision returns the parts of a decision that may be recorded. A reference must be the client's
// own: it must not identify a request here or at another resource server.
func (in *reading) decision(ctx context.Context, d oauth.Decision) (out reported, ok bool, err error) {
	refused := d.Status == 401 || d.Status == 403
	if refused != reference.IsOf(d.Reference, in.client.ID) || !refused && d.Status != 0 ||
		!word.MatchString(d.Outcome) {
		return out, false, nil
	}
	if ok, err := in.own(ctx, d.Resource); err != nil || !ok {
		return out, false, err
	}
	d.At = in.when(d.At)
	if refused {
		out.presented, out.issued, err = in.presented(ctx, d)
	} else {
		out.presented.Keys, ok, err = in.keys(ctx, d.GrantID)
		if err != nil || !ok || !in.young(d.GrantID) {
			return out, false, err
		}
	}
	out.Decision = d
	return out, true, err
}

// presented returns the known facts about the token of a refused request, from the grant that it
// names. Among its other claims, only the issue and expiry times are trusted. If the grant is for
// another resource server, only that fact is returned, without attempt, client or user: the
// reporting resource server may never have seen such a token.
func (in *reading) presented(ctx context.Context, d oauth.Decision) (p attempt.Presented, issued time.Time, err error) {
	if d.Scheme == "" {
		return attempt.Presented{State: attempt.TokenNone}, issued, nil
	}
	p.State = attempt.TokenForeign
	c := d.Claims
	if c == nil || c.Issuer != in.c.Issuer || !tokenID.MatchString(c.TokenID) {
		return p, issued, nil
	}
	claims := oauth.AccessTokenClaims{
		Issuer: c.Issuer, Expires: c.Expires, IssuedAt: c.IssuedAt, TokenID: c.TokenID, NodeID: c.NodeID,
		GrantID: c.GrantID, ClientID: c.ClientID, Audience: c.Audience,
	}
	if c.GrantID == "" { // a machine's token
		ok, err := in.own(ctx, c.Audience)
		if err != nil || !ok {
			return p, issued, err
		}
	} else {
		g, err := in.grant(ctx, c.GrantID)
		if err != nil || g == nil {
			return p, issued, err
		}
		ours, err := in.own(ctx, g.Resource)
		if err != nil {
			return p, issued, err
		}
		if !ours {
			return attempt.Presented{State: attempt.TokenActive, Audience: g.Resource}, issued, nil
		}
		claims.ClientID, claims.Audience = g.ClientID, g.Resource
		p.Keys = attempt.Keys{Client: g.ClientID, Person: g.UserID, Grant: g.ID}
	}
	p.Audience, p.State = claims.Audience, in.state(ctx, d, claims)
	return p, time.Unix(c.IssuedAt, 0), nil
}

// keys returns the keys of a grant for one of the client's resource servers.
func (in *reading) keys(ctx context.Context, id string) (attempt.Keys, bool, error) {
	g, err := in.grant(ctx, id)
	if err != nil || g == nil {
		return attempt.Keys{}, false, err
	}
	ok, err := in.own(ctx, g.Resource)
	return attempt.Keys{Client: g.ClientID, Person: g.UserID, Grant: g.ID}, ok, err
}

// call cleans a call, and reports whether it belongs to a resource server of the client. The call's
// grant determines the user; a machine's call has no grant.
func (in *reading) call(ctx context.Context, c *oauth.Call) (bool, error) {
	if c.Issuer != in.c.Issuer || !word.MatchString(c.Outcome) || !tokenID.MatchString(c.TokenID) || c.Tool == "" ||
		len(c.Tool) > maxTool || len(c.ClientID) > maxTool || len(c.Subject) > maxTool ||
		c.Digest != "" && !digest.MatchString(c.Digest) || c.Clearance != "" && !tokenID.MatchString(c.Clearance) {
		return false, nil
	}
	if ok, err := in.own(ctx, c.Resource); err != nil || !ok {
		return false, err
	}
	c.At, c.Tool = in.when(c.At), strings.ToValidUTF8(c.Tool, "?")
	addr, err := netip.ParseAddr(c.Address)
	c.Address = ""
	if err == nil {
		c.Address = addr.Unmap().WithZone("").String()
	}
	if c.GrantID == "" {
		return c.Subject == c.ClientID, nil // RFC 9068 §5
	}
	k, ok, err := in.keys(ctx, c.GrantID)
	c.ClientID, c.Subject = k.Client, k.Person
	return ok, err
}

func (in *reading) own(ctx context.Context, resource string) (ok bool, err error) {
	ok, known := in.serves[resource]
	if !known {
		if ok, err = in.c.Tokens.Serves(ctx, in.client, resource); err == nil {
			in.serves[resource] = ok
		}
	}
	return ok, err
}

func (in *reading) grant(ctx context.Context, id string) (*storage.Grant, error) {
	if g, known := in.grants[id]; known || id == "" {
		return g, nil
	}
	g, err := in.c.Store.Grant(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		in.grants[id] = nil
	case err != nil:
		return nil, err
	default:
		in.grants[id] = &g
	}
	return in.grants[id], nil
}

// when converts a time of the resource server to this server's clock.
func (in *reading) when(at time.Time) time.Time {
	return in.c.Now().Add(-min(max(in.sent.Sub(at), 0), oldest))
}
