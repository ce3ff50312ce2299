package flow

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Shown binds an approval to the contents of the page: everything about a request that could change
// before the user answers. The pages seal it into their forms. No answer that Shown does not cover
// is sent to a client (SP-01, SP-03, AS-77).
type Shown struct {
	Client   ShownClient  `json:"c"`
	Resource string       `json:"u"`
	Scopes   oauth.Scopes `json:"s"`
	Allowed  oauth.Scopes `json:"a,omitempty"` // scopes of Scopes that were allowed before and not asked about
	Wording  storage.Hash `json:"w"`           // digest of the displayed names and descriptions
}

// ShownClient is how a page describes the client and the redirect URI.
type ShownClient struct {
	RedirectURI string               `json:"r"`
	Name        string               `json:"n"`
	Host        string               `json:"h"` // host that identifies the client
	Source      storage.ClientSource `json:"o"`
	Vouched     bool                 `json:"v"` // by the operator
	Material    storage.Hash         `json:"m"` // Client.Material
}

// Shown returns the contents of a page for a request with its question.
func (f *Flow) Shown(r Request, q policy.Question) *Shown {
	return &Shown{
		Client:   f.shownClient(r.Identified),
		Resource: r.Resource.URI,
		Scopes:   q.Asked,
		Allowed:  q.Allowed,
		Wording:  wording(r.Resource.Resource, q.Asked),
	}
}

// granted returns the scopes that a choice on the page grants for a covered request. It returns
// policy.ErrNothing or policy.ErrPreset if the choice is not valid.
func (x *Shown) granted(r storage.Resource, c policy.Choice) (oauth.Scopes, error) {
	return policy.Question{Resource: r, Asked: x.Scopes, Allowed: x.Allowed}.Grant(c)
}

func (f *Flow) shownClient(to Identified) ShownClient {
	c := to.Client
	return ShownClient{to.RedirectURI, c.Name, DocumentHost(c), c.Source, f.Clients.Vouched(c), c.Material()}
}

// DocumentHost returns the host of a client's metadata document, which is the only verified fact
// about the client. It returns "" for clients without a document.
func DocumentHost(c storage.Client) string {
	if u, err := url.Parse(c.ID); err == nil && c.Source == storage.SourceCIMD {
		return u.Host
	}
	return ""
}

// covers reports whether the page showed everything that a request asks for.
func (f *Flow) covers(x *Shown, r Request) bool {
	return f.coversClient(x, r.Identified) && x.Resource == r.Resource.URI && x.Scopes.Has(r.Scopes...) &&
		x.Wording == wording(r.Resource.Resource, x.Scopes)
}

// coversClient reports whether the response goes to the client and the redirect URI on the page.
// That is enough for a denial, which grants nothing.
func (f *Flow) coversClient(x *Shown, to Identified) bool {
	return x != nil && x.Client == f.shownClient(to)
}

// marks returns the labels that the page shows beside a scope's description.
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

// said returns the contents of the page for the audit log. A covered request names the same client
// and resource.
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

// wording returns the digest of the texts that the user's decision depends on, including the texts
// of included scopes. An operator may change them while the page is open.
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
