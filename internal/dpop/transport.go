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

// Transport is a client's RoundTripper. It adds a proof to each request, for requests to the token
// endpoint (RFC 9449 §5) and to resources (§7). If a request presents an access token with the
// scheme DPoP, the proof contains its hash. Transport remembers the nonces of each origin
// separately (§8.2, §9). It repeats a request once if the server demands a nonce and the body can
// be read again. It is safe for concurrent use.
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
	maxRefusal = 4 << 10 // bytes of an error document that are read
)

// NewTransport returns a Transport that sends with next. If next is nil, it uses
// http.DefaultTransport.
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
	proved := r.Clone(r.Context()) // a RoundTripper must not modify the request
	proved.Body = body
	proved.Header.Set(Header, proof) // CL-30
	return t.next.RoundTrip(proved)
}

// presented returns the access token that a request presents with the scheme DPoP.
func presented(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, Header) {
		return ""
	}
	return token
}

// Again returns the body of a request for a second attempt. ok is false if it can be read only
// once.
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

// learn stores the nonce of a response, and reports whether the request was refused because of a
// missing nonce.
func (t *Transport) learn(r *http.Request, resp *http.Response) (refused bool) {
	nonce := resp.Header.Get(NonceHeader)
	if nonce == "" || len(nonce) > maxNonce {
		return false
	}
	t.mu.Lock()
	if len(t.nonces) >= maxOrigins && t.nonces[origin(r)] == "" {
		clear(t.nonces) // each server then refuses one more request
	}
	t.nonces[origin(r)] = nonce
	t.mu.Unlock()
	return wantsNonce(resp)
}

// wantsNonce reports whether a response refuses a proof without the server's nonce: a 400 from an
// authorization server (RFC 9449 §8), or a 401 from a resource (§9).
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
