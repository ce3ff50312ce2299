package authserver

import (
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// pushBody is the response to a pushed authorization request (RFC 9126 §2.2).
type pushBody struct {
	RequestURI string `json:"request_uri"` // REQUIRED
	ExpiresIn  int64  `json:"expires_in"`  // REQUIRED, in seconds
}

// handlePush serves POST /par (RFC 9126 §2.1, AS-228).
func (s *Server) handlePush(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	push := flow.Push{Params: p.Values, Networks: network.Blocks(s.cfg.TrustedProxies.ClientAddr(r))}
	push.Client, push.Unread, err = s.grants.clientAuth.ForPush(r.Context(), credentials(r, p))
	if nonce := s.grants.proofs.Nonce(); nonce != "" {
		w.Header().Set(dpop.NonceHeader, nonce)
	}
	if err == nil {
		err = s.grants.bindPushed(r, push)
	}
	var uri string
	if err == nil {
		uri, err = s.pages.authorize.pushes.Push(r.Context(), push)
	}
	if err != nil {
		s.cfg.Audit.Record(r.Context(), audit.AuthorizeRefused, refusal.Attr(err))
		s.writeError(w, r, err)
		return
	}
	wire.WriteJSON(w, http.StatusCreated, pushBody{uri, int64(flow.PushedTTL / time.Second)})
}

// bindPushed binds the code of a request with a DPoP proof to the proof's key, like dpop_jkt
// (RFC 9449 §10.1).
func (g *grants) bindPushed(r *http.Request, push flow.Push) error {
	proof, err := g.proofs.Read(r.Header.Values(dpop.Header), g.pushEndpoint)
	if err != nil || !proof.Given() {
		return err
	}
	if jkt := push.Params.Get("dpop_jkt"); jkt != "" && jkt != proof.Thumbprint {
		return oauth.NewError(oauth.InvalidDPoPProof, "The parameter 'dpop_jkt' is not the key of the DPoP proof.")
	}
	push.Params.Set("dpop_jkt", proof.Thumbprint)
	return g.proofs.Use(r.Context(), push.Client, proof, network.Coarse(g.proxies.ClientAddr(r)))
}

// pushed returns the pushed request that the parameters of /authorize refer to, or the parameters
// themselves without such a reference. If it returns false, it has sent an error or a redirect.
func (p *authorizePages) pushed(w http.ResponseWriter, r *http.Request, query url.Values) (url.Values, bool) {
	asked := form.New(query)
	resume, uri := asked.Get(form.ParamResume), asked.Get("request_uri")
	switch {
	case resume != "":
		var q form.Query
		err := p.forms.sessions.As(w, r, func(browser string) (err error) {
			q, err = p.pushes.Resume(resume, browser)
			return err
		})
		if err == nil {
			return q.Values(), true
		}
		p.steps.write(w, r, flow.Fail{Err: err})
	case flow.IsPushed(uri):
		var q form.Query
		err := p.forms.sessions.As(w, r, func(browser string) (err error) {
			q, err = p.pushes.Open(r.Context(), asked.Get("client_id"), uri, browser)
			return err
		})
		if err == nil { // to an address that can be reloaded at any time
			redirect(w, p.steps.views.paths.request(q))
			break
		}
		p.steps.write(w, r, flow.Fail{Err: err})
	default:
		return query, true
	}
	return nil, false
}
