package authserver

import (
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
	return &shown{s.shownClient(a.identified), a.resource.URI, a.scopes}
}

func (s *Server) shownClient(who identified) shownClient {
	c := clientParty(who.client)
	return shownClient{who.redirectURI, c.Name, c.Host, who.client.Source, s.vouched(who.client), who.client.Material()}
}

// covers reports whether a request is no more than the person was shown.
func (s *Server) covers(x *shown, a authorization) bool {
	return s.coversClient(x, a.identified) && x.Resource == a.resource.URI && x.Scopes.Has(a.scopes...)
}

// coversClient reports whether an answer goes to the client that the person was shown, and
// to the place that they were shown. It is enough for a refusal, which gives nothing away.
func (s *Server) coversClient(x *shown, who identified) bool {
	return x != nil && x.Client == s.shownClient(who)
}
