package grant

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	maxBearerTTL  = time.Hour        // of a token for an assertion (AS-232)
	assertionSlop = 30 * time.Second // allowed difference of the issuer's clock
	keysRetry     = 10 * time.Second // pause before another try if an issuer's keys are unavailable
)

// Assertor verifies assertions of trusted issuers. trust.Issuers implements it.
type Assertor interface {
	Verify(ctx context.Context, raw string) (trust.Assertion, error)
	// Offers reports whether an issuer is trusted for ID-JAGs, and whether one is trusted for
	// workloads.
	Offers(ctx context.Context) (enterprise, workload bool, err error)
}

// Bearer is the grant for assertions (RFC 7523 §2.1). With an ID-JAG, a company's identity provider
// lets a client act for a user. With a platform token, a workload acts as its own client (AS-179,
// AS-197, AS-209). There is no consent and no refresh token (AS-191, AS-193).
type Bearer struct {
	Assertor Assertor
	Store    storage.AssertionGrants
	Auth     *ClientAuth
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Ring     *secrets.Ring
	Minter   *Minter
	Proofs   *Proofs
	// Connectors maps issuers to the ids of the configured providers that have this issuer.
	Connectors map[string][]string
}

func invalidGrant(why string) *oauth.Error { return oauth.NewError(oauth.InvalidGrant, why) }

// Reply answers a token request. Its error is an *oauth.Error. Errors that the client cannot
// resolve all have status 400 and a code of RFC 6749 §5.2 (AS-206, AS-233).
func (g *Bearer) Reply(ctx context.Context, r TokenRequest) (*oauth.TokenResponse, error) {
	switch enterprise, workload, err := g.Assertor.Offers(ctx); {
	case err != nil:
		return nil, refusal.Unavailable(err)
	case !enterprise && !workload:
		return nil, ErrUnsupported
	}
	if r.Assertion == "" {
		return nil, oauth.NewError(oauth.InvalidRequest, "The parameter 'assertion' is missing.") // AS-200
	}
	a, err := g.Assertor.Verify(ctx, r.Assertion)
	if err != nil {
		return nil, unbelieved(err)
	}
	request.Of(ctx).Note(slog.String("trust", a.Entry.ID)) // only this part of the assertion (AS-195)
	client, err := g.client(ctx, a, r)
	if err != nil {
		return nil, err
	}
	if a.Thumbprint != "" && a.Thumbprint != r.Proof.Thumbprint { // AS-194
		return nil, invalidGrant("The assertion is bound to a key: send a DPoP proof of that key.")
	}
	if err := g.Proofs.Use(ctx, client, r.Proof, r.From); err != nil {
		return nil, err
	}
	act, err := actors(a.Act)
	if err != nil {
		return nil, invalidGrant("The assertion names too many actors, or says them in another form.").Because(err)
	}
	resource, err := g.resource(ctx, a, r)
	if err == nil { // before the assertion is used up
		err = g.Minter.Demand(ctx, resource.URI, r.Proof)
	}
	if err != nil {
		return nil, err
	}
	scopes, until, err := bearerScopes(resource, a, r.Scopes, g.Minter.Now())
	if err != nil {
		return nil, err
	}
	grant, err := g.grant(ctx, a, client, r, storage.Grant{Resource: resource.URI, Scopes: scopes})
	if err != nil {
		return nil, err
	}
	if a.Kind == trust.Enterprise { // the user's account is known only now
		scopes, err = g.Bindings.Permit(ctx, binding.Of(grant), resource.Resource, scopes)
		if errors.Is(err, refusal.ErrNoScopes) {
			err = oauth.NewError(oauth.InvalidScope, "The person may have none of these scopes here.").Because(err)
		}
		if err != nil {
			return nil, err
		}
	}
	now := g.Minter.Now()
	if end := now.Add(g.ttl(a)); until.IsZero() || end.Before(until) {
		until = end
	}
	return g.Minter.issue(ctx, issuance{
		grant: grant, scopes: scopes, until: until, act: act, issuedAt: now, event: audit.TokenIssued,
		proof: r.Proof,
	})
}

// unbelieved returns the token endpoint error for an assertion that was not verified.
func unbelieved(err error) error {
	var refused *trust.Refusal
	if !errors.As(err, &refused) {
		return refusal.Unavailable(err)
	}
	e := oauth.NewError(refused.Code, refused.Why).Because(refused)
	if refused.Code == oauth.TemporarilyUnavailable {
		e.RetryAfter = keysRetry
	}
	return e
}

// client returns the requesting client. A workload is its own client: it is not registered, and a
// client_id in the request is ignored (AS-199). An ID-JAG is valid only for the client that it
// names (AS-185).
func (g *Bearer) client(ctx context.Context, a trust.Assertion, r TokenRequest) (storage.Client, error) {
	if a.Kind != trust.Enterprise {
		// The trust entry counts as the operator's registration.
		return storage.Client{ID: workloadID(a), Source: storage.SourceStatic}, nil
	}
	c, err := g.Auth.ForAssertion(ctx, r.Credentials, a.ClientID) // AS-190
	switch {
	case err != nil:
		return c, err
	case c.Public() && !a.Entry.AllowPublic:
		return c, oauth.NewError(oauth.UnauthorizedClient,
			"The client has no credentials, which the trust entry of this issuer demands.")
	case c.Operated() && !may(c, oauth.GrantJWTBearer), c.Source == storage.SourcePerson:
		return c, oauth.NewError(oauth.UnauthorizedClient, "The client is not registered for the grant for assertions.")
	case c.ID != a.ClientID:
		return c, invalidGrant("The assertion was made for another client.")
	}
	return c, nil
}

// workloadID returns the client id of a workload. It contains the id of the trust entry, so that no
// other issuer can produce it, whatever the template is. Claims do not influence whether the id is
// added: otherwise one workload of an entry could get the id of another.
func workloadID(a trust.Assertion) string {
	name := a.Name
	if !strings.HasPrefix(a.Entry.Subject, a.Entry.ID+":") {
		name = a.Entry.ID + ":" + name
	}
	return "workload:" + name
}

// actors returns the programs that act for the user. Each must have a name. Node ids of sub-agents
// are removed, because only this server assigns them.
func actors(claim []byte) (*oauth.Actor, error) {
	first, err := oauth.ParseActor(claim)
	for a := first; a != nil && err == nil; a = a.Act {
		if a.NodeID = ""; a.Subject == "" && a.ClientID == "" {
			err = oauth.ErrActor
		}
	}
	return first, err
}

// ttl returns the lifetime of a token and its grant.
func (g *Bearer) ttl(a trust.Assertion) time.Duration {
	ttl := min(g.Minter.TTL, maxBearerTTL)
	if a.Entry.MaxTTL > 0 {
		ttl = min(ttl, a.Entry.MaxTTL)
	}
	return ttl
}

// grant uses up the assertion and stores the grant.
func (g *Bearer) grant(
	ctx context.Context, a trust.Assertion, client storage.Client, r TokenRequest, what storage.Grant,
) (storage.Grant, error) {
	now := g.Minter.Now()
	what.ID, what.ClientID, what.TrustID = secrets.ID(Prefix), client.ID, a.Entry.ID
	what.CreatedAt, what.ExpiresAt, what.AuthTime = now, now.Add(g.ttl(a)), a.AuthTime
	what.Asserted = asserted(a)
	request := storage.AssertionGrant{
		IssuedAt: a.IssuedAt, SpentUntil: a.Expires.Add(assertionSlop), Grant: what, Configured: a.Entry.Config,
		From: r.From,
	}
	if !a.Entry.Resubmit { // AS-188
		digest := secrets.Hash(a.Issuer + "\x00" + a.ID)
		request.SpendID = base64.RawURLEncoding.EncodeToString(digest[:])
	}
	if a.Kind == trust.Enterprise {
		request.Client, request.Person = &client, g.person(a, now)
	}
	out, err := g.Store.GrantAssertion(ctx, request)
	if err != nil {
		if errors.Is(err, storage.ErrPaused) {
			return storage.Grant{}, paused(err, "assertion")
		}
		return storage.Grant{}, ungranted(err)
	}
	g.record(ctx, a, out)
	return out.Grant, nil
}

// asserted returns what the assertion claims about the user's authentication, or nil (AS-231).
// Nothing is taken over for a workload (AS-208).
func asserted(a trust.Assertion) *storage.Asserted {
	if a.Kind != trust.Enterprise || a.ACR == "" && len(a.AMR) == 0 && len(a.Act) == 0 {
		return nil
	}
	return &storage.Asserted{ACR: a.ACR, AMR: a.AMR, Act: a.Act}
}

// ungranted returns the token endpoint error for a store that refused the grant.
func ungranted(err error) error {
	for _, m := range []struct {
		err error
		why string
	}{
		{storage.ErrSpent, "The assertion was used before: each is good once here. Ask its issuer for a new one."},
		{storage.ErrNotFound, "The person of the assertion has no account here, and the server creates none."},
		{storage.ErrExists, "The account of the person was unlinked from the issuer. The operator can link it again."},
		{storage.ErrStopped, "All access of the person has ended since the assertion was made."},
		{storage.ErrEnded, "The issuer has ended what the person had since the assertion was made. Ask it for a new one."},
		{storage.ErrRevoked, "The account of the person, the client or the trust entry has been cut off."},
	} {
		if errors.Is(err, m.err) {
			return invalidGrant(m.why)
		}
	}
	return refusal.Unavailable(err)
}

// record adds a created or linked user to the audit log.
func (g *Bearer) record(ctx context.Context, a trust.Assertion, out storage.AssertionOutcome) {
	switch out.LinkedBy {
	case "":
	case storage.LinkedByCreation:
		g.Minter.Audit.Record(ctx, audit.UserCreated, slog.String("user", out.User.ID),
			slog.String("user_name", out.User.Name), slog.String("trust", a.Entry.ID))
	default:
		g.Minter.Audit.Record(ctx, audit.TrustLinked, slog.String("user", out.User.ID),
			slog.String("trust", a.Entry.ID), slog.String("by", string(out.LinkedBy)))
	}
}

// person returns the user that an ID-JAG identifies (AS-192).
func (g *Bearer) person(a trust.Assertion, now time.Time) *storage.AssertedPerson {
	p := &storage.AssertedPerson{
		Issuer: a.Issuer, Tenant: a.Tenant, Subject: a.Subject, Mail: a.Email, Connectors: g.Connectors[a.Issuer],
	}
	if a.AudienceTenant == "" || a.AudienceTenant == g.Minter.Issuer { // this server is its own only tenant
		p.AudienceSubject = a.AudienceSubject
	}
	if a.SAML != nil {
		p.SAMLIssuer, p.SAMLName = a.SAML.Issuer, a.SAML.NameID
	}
	if a.Entry.CreatePeople {
		mac := g.Ring.MAC("asserted person", []byte(a.Issuer+"\x00"+a.Tenant+"\x00"+a.Subject))
		p.NewUser = &storage.User{
			ID: identifier.User + base64.RawURLEncoding.EncodeToString(mac[:20]), Name: personName(a), CreatedAt: now,
		}
	}
	return p
}

// personName returns an account name from the names in an assertion.
func personName(a trust.Assertion) string {
	said := cmp.Or(a.AccountName, a.Email)
	if identifier.ValidName(said) { // never shortened: a shorter address is another address
		return said
	}
	return identifier.Name(cmp.Or(said, a.Name, a.Subject), a.Entry.ID)
}

// bearerScopes returns the scopes to grant for an assertion, and the latest end of the token.
func bearerScopes(
	r policy.Resolution, a trust.Assertion, requested oauth.Scopes, now time.Time,
) (out oauth.Scopes, until time.Time, err error) {
	asked := policy.Asked{Requested: requested, Named: a.Scopes, Entry: a.Entry.Scopes}
	if a.Kind != trust.Enterprise {
		out = policy.WithoutPerson(r.Resource, policy.Asserted(r.Resource, asked))
	} else {
		out = policy.Asserted(r.Resource, asked)
		// AS-238: asserted authentication counts as stated; a missing claim proves nothing
		out = policy.Proved(r.Resource, out, policy.Proof{ACR: a.ACR, At: a.AuthTime}, now)
		if want := policy.AuthenticationFor(r.Resource, out); want.MaxAge > 0 {
			until = a.AuthTime.Add(want.MaxAge)
		}
	}
	if len(out) == 0 {
		return nil, until, oauth.NewError(oauth.InvalidScope, "The assertion allows none of the requested scopes.")
	}
	return out, until, nil
}
