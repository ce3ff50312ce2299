package dpop

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Transport adds a proof to each request, and its hash to that of a request that presents an access
// token with the scheme DPoP. It is the half of a client: for requests to the token endpoint
// (RFC 9449 §5) as for those to a resource (§7). It remembers the nonces that servers give, those of
// each origin apart (§8.2, §9), and repeats a request once with the nonce that it lacked, if its body
// can be had again. It is safe for concurrent use.
type Transport struct {
	signer *Signer
	next   http.RoundTripper
	now    func() time.Time

	mu     sync.Mutex // guards nonces
	nonces map[string]string
}

const (
	maxOrigins = 64
	maxNonce   = 1 << 10 // bytes
	maxRefusal = 4 << 10 // bytes of an error document that are looked at
)

// NewTransport returns a Transport that sends by next; nil is http.DefaultTransport.
func NewTransport(s *Signer, next http.RoundTripper) *Transport {
	if next == nil {
		next = http.DefaultTransport
	}
	return &Transport{signer: s, next: next, now: time.Now, nonces: map[string]string{}}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	used := t.nonce(r)
	resp, err := t.send(r, r.Body, used)
	if err != nil || !t.learn(r, resp) || t.nonce(r) == used {
		return resp, err
	}
	body, ok := Again(r)
	if !ok {
		return resp, nil
	}
	resp.Body.Close()
	resp, err = t.send(r, body, t.nonce(r))
	if err == nil {
		t.learn(r, resp)
	}
	return resp, err
}

func (t *Transport) send(r *http.Request, body io.ReadCloser, nonce string) (*http.Response, error) {
	proof, err := t.signer.Proof(Claims{
		Method: r.Method,
		URL:    r.URL.String(),
		Token:  presented(r),
		Nonce:  nonce,
		Now:    t.now(),
	})
	if err != nil {
		if body != nil {
			body.Close()
		}
		return nil, err
	}
	proved := r.Clone(r.Context()) // a RoundTripper leaves the request as it is
	proved.Body = body
	proved.Header.Set(Header, proof) // CL-30
	return t.next.RoundTrip(proved)
}

// presented returns the access token that a request presents as one that is bound to a key.
func presented(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, Header) {
		return ""
	}
	return token
}

// Again returns the body of a request for a second time. ok is false if it can be had only once.
func Again(r *http.Request) (body io.ReadCloser, ok bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	return body, err == nil
}

func origin(r *http.Request) string { return r.URL.Scheme + "://" + r.URL.Host }

func (t *Transport) nonce(r *http.Request) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nonces[origin(r)]
}

// learn keeps the nonce of an answer, and reports whether the request was refused for want of it.
func (t *Transport) learn(r *http.Request, resp *http.Response) (refused bool) {
	nonce := resp.Header.Get(NonceHeader)
	if nonce == "" || len(nonce) > maxNonce {
		return false
	}
	t.mu.Lock()
	if len(t.nonces) >= maxOrigins && t.nonces[origin(r)] == "" {
		clear(t.nonces) // which costs each server one refusal more
	}
	t.nonces[origin(r)] = nonce
	t.mu.Unlock()
	return wantsNonce(resp)
}

// wantsNonce reports whether an answer is the refusal of a proof without the nonce of the server: a
// 400 of an authorization server (RFC 9449 §8), or the 401 of a resource (§9).
func wantsNonce(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusBadRequest:
		start, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
		var refusal struct {
			Code oauth.Code `json:"error"`
		}
		return err == nil && json.Unmarshal(start, &refusal) == nil && refusal.Code == oauth.UseDPoPNonce
	case http.StatusUnauthorized:
		list, _ := oauth.ParseChallenges(resp.Header.Values("WWW-Authenticate"))
		for _, c := range list {
			if strings.EqualFold(c.Scheme, Header) && c.Params["error"] == string(oauth.UseDPoPNonce) {
				return true
			}
		}
	}
	return false
}
