package authserver

import (
	"encoding/json"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// shown is what an approval is bound to: all of a request that the person was shown and that
// could be another when they answer. Consent page and departure page seal it into their
// forms; nothing is sent to a client by an answer that it does not cover (SP-01, SP-03,
// AS-77).
type shown struct {
	Client   shownClient  `json:"c"`
	Resource string       `json:"u"`
	Scopes   oauth.Scopes `json:"s"`
	Wording  storage.Hash `json:"w"` // what the page called the resource and the scopes
}

// shownClient is what a page shows of who asks, and of where the answer goes.
type shownClient struct {
	RedirectURI string               `json:"r"`
	Name        string               `json:"n"`
	Host        string               `json:"h"` // that identifies the client
	Source      storage.ClientSource `json:"o"`
	Vouched     bool                 `json:"v"` // by the operator
	Material    storage.Hash         `json:"m"` // Client.Material
}

func (s *Server) shownOf(a authorization) *shown {
	return &shown{s.shownClient(a.identified), a.resource.URI, a.scopes, wording(a.resource.Resource, a.scopes)}
}

func (s *Server) shownClient(who identified) shownClient {
	c := clientParty(who.client)
	return shownClient{who.redirectURI, c.Name, c.Host, who.client.Source, s.clients.Vouched(who.client), who.client.Material()}
}

// covers reports whether a request is no more than the person was shown.
func (s *Server) covers(x *shown, a authorization) bool {
	return s.coversClient(x, a.identified) && x.Resource == a.resource.URI && x.Scopes.Has(a.scopes...) &&
		x.Wording == wording(a.resource.Resource, x.Scopes)
}

// wording is the digest of the words that a person decides by: an operator may have changed
// them between the page and the click.
func wording(r storage.Resource, scopes oauth.Scopes) storage.Hash {
	words := []string{r.Name}
	for _, s := range r.Scopes {
		if scopes.Has(s.Name) {
			words = append(words, s.Name, s.Description)
		}
	}
	text, _ := json.Marshal(words) // strings cannot fail
	return storage.Hash(secrets.Hash(string(text)))
}

// coversClient reports whether an answer goes to the client that the person was shown, and
// to the place that they were shown. It is enough for a refusal, which gives nothing away.
func (s *Server) coversClient(x *shown, who identified) bool {
	return x != nil && x.Client == s.shownClient(who)
}
