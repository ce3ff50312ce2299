package mcpclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// RoundTrip implements http.RoundTripper for requests to the origin of the MCP server. It refuses
// other origins, which would receive the token (CL-26).
func (w *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	if !w.found.isOurs(r.URL) {
		closeBody(r)
		return nil, fmt.Errorf("mcpclient: the tokens are for %s, and not for %s", w.found.origin, r.URL.Host)
	}
	t, err := w.tokens.Token(r.Context())
	if err != nil {
		closeBody(r)
		return nil, err
	}
	body := r.Body
	var done [2]bool // each once: a new token, more scopes
	for {
		resp, err := w.send(r, body, t)
		if err != nil {
			return nil, err
		}
		next, err := w.next(r, resp, t, &done)
		if next == nil && err == nil {
			return resp, nil
		}
		if err == nil {
			var again bool
			if body, again = dpop.Again(r); !again {
				return resp, nil
			}
		}
		// Drain the body so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, maxText)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		t = next
	}
}

// next returns the token for repeating a request, or nil if its response is final.
func (w *Client) next(r *http.Request, resp *http.Response, t *token, done *[2]bool) (*token, error) {
	needed := lacking(resp)
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		if done[0] {
			return nil, nil
		}
		done[0] = true
		return w.tokens.replace(r.Context(), t)
	case w.mayAsk(needed) && !done[1]:
		done[1] = true
		wider, err := w.tokens.widen(r.Context(), t, needed)
		if err != nil {
			return nil, nil // the MCP server's refusal is more informative
		}
		return wider, nil
	}
	w.tokens.accepted(t)
	return nil, nil
}

func (w *Client) send(r *http.Request, body io.ReadCloser, t *token) (*http.Response, error) {
	r2 := r.Clone(r.Context()) // a RoundTripper must not modify the request
	r2.Body = body
	r2.Header.Set("Authorization", t.kind+" "+t.access) // CL-25
	return w.calls.RoundTrip(r2)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// lacking returns the scopes that a refused call needs (RFC 6750 §3.1, MCP "Runtime Insufficient
// Scope Errors").
func lacking(resp *http.Response) oauth.Scopes {
	if resp.StatusCode != http.StatusForbidden {
		return nil
	}
	list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
	for _, c := range list {
		scheme := strings.EqualFold(c.Scheme, "Bearer") || strings.EqualFold(c.Scheme, "DPoP")
		if scheme && c.Params["error"] == string(oauth.InsufficientScope) {
			return oauth.ParseScopes(c.Params["scope"])
		}
	}
	return nil
}
