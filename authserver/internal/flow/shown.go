package flow

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Shown is what an approval is bound to: all of a request that the person was shown and that
// could be another when they answer. The pages that ask seal it into their
// forms; nothing is sent to a client by an answer that it does not cover (SP-01, SP-03,
// AS-77).
type Shown struct {
	Client   ShownClient  `json:"c"`
	Resource string       `json:"u"`
	Scopes   oauth.Scopes `json:"s"`
	Allowed  oauth.Scopes `json:"a,omitempty"` // those of Scopes that were allowed before, and not asked about
	Wording  storage.Hash `json:"w"`           // what the page called the resource and the scopes
}

// ShownClient is what a page shows of who asks, and of where the answer goes.
type ShownClient struct {
	RedirectURI string               `json:"r"`
	Name        string               `json:"n"`
	Host        string               `json:"h"` // that identifies the client
	Source      storage.ClientSource `json:"o"`
	Vouched     bool                 `json:"v"` // by the operator
	Material    storage.Hash         `json:"m"` // Client.Material
}

// Shown is what a page shows of a request with its question.
func (f *Flow) Shown(r Request, q policy.Question) *Shown {
	return &Shown{
		Client:   f.shownClient(r.Identified),
		Resource: r.Resource.URI,
		Scopes:   q.Asked,
		Allowed:  q.Allowed,
		Wording:  wording(r.Resource.Resource, q.Asked),
	}
}

// granted is what a choice on the page grants of a request that the page covers. policy.ErrNothing,
// policy.ErrPreset.
func (x *Shown) granted(r storage.Resource, c policy.Choice) (oauth.Scopes, error) {
	return policy.Question{Resource: r, Asked: x.Scopes, Allowed: x.Allowed}.Grant(c)
}

func (f *Flow) shownClient(to Identified) ShownClient {
	c := to.Client
	return ShownClient{to.RedirectURI, c.Name, DocumentHost(c), c.Source, f.Clients.Vouched(c), c.Material()}
}

// DocumentHost is the host of a client's metadata document, which is what has been
// verified about it; "" for clients that have none.
func DocumentHost(c storage.Client) string {
	if u, err := url.Parse(c.ID); err == nil && c.Source == storage.SourceCIMD {
		return u.Host
	}
	return ""
}

// covers reports whether a request is no more than the person was shown.
func (f *Flow) covers(x *Shown, r Request) bool {
	return f.coversClient(x, r.Identified) && x.Resource == r.Resource.URI && x.Scopes.Has(r.Scopes...) &&
		x.Wording == wording(r.Resource.Resource, x.Scopes)
}

// coversClient reports whether an answer goes to the client that the person was shown, and
// to the place that they were shown. It is enough for a refusal, which gives nothing away.
func (f *Flow) coversClient(x *Shown, to Identified) bool {
	return x != nil && x.Client == f.shownClient(to)
}

// marks are what the page says of a scope beside its description.
func marks(r storage.Resource, s storage.ScopeText) (out []string) {
	if s.Access != "" {
		out = append(out, string(s.Access))
	}
	if policy.Required(r).Has(s.Name) {
		out = append(out, "required")
	}
	if s.Dangerous {
		out = append(out, "dangerous")
	}
	for _, scope := range s.Implies {
		out = append(out, "includes "+scope)
	}
	return out
}

// said is what the page said, for the audit: a request that it covers names the same client and resource.
func (x *Shown) said(r Request) *grant.Shown {
	var scopes []string
	meant := policy.Implied(r.Resource.Resource, x.Scopes)
	for _, s := range r.Resource.Scopes {
		if meant.Has(s.Name) {
			scopes = append(scopes, s.Name+": "+s.Description)
		}
	}
	out := &grant.Shown{
		Client: x.Client.Name, Resource: r.Resource.Name, Scopes: strings.Join(scopes, "; "),
		Digest: hex.EncodeToString(x.Wording[:]),
	}
	if x.Client.RedirectURI != "" {
		out.Place = oauth.RedirectPlace(x.Client.RedirectURI)
	}
	return out
}

// wording is the digest of the words that a person decides by, with those of what the scopes include:
// an operator may have changed them between the page and the click.
func wording(r storage.Resource, scopes oauth.Scopes) storage.Hash {
	words := []string{r.Name}
	meant := policy.Implied(r, scopes)
	for _, s := range r.Scopes {
		if meant.Has(s.Name) {
			words = append(words, s.Name, s.Description)
			words = append(words, marks(r, s)...)
		}
	}
	text, _ := json.Marshal(words) // strings cannot fail
	return storage.Hash(secrets.Hash(string(text)))
}
