package trust

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// publisher is the site of an issuer.
type publisher struct {
	*httptest.Server
	mu     sync.Mutex
	keys   string
	status int
	reads  int
	issuer string // in the metadata; "": the correct one
}

func newPublisher(t *testing.T, keys string) *publisher {
	p := &publisher{keys: keys, status: http.StatusOK}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.URL.Path {
	case "/keys":
		p.reads++
		w.WriteHeader(p.status)
		w.Write([]byte(p.keys))
	case "/redirect":
		http.Redirect(w, r, "/keys", http.StatusFound)
	case "/.well-known/openid-configuration":
		issuer := p.issuer
		if issuer == "" {
			issuer = p.URL
		}
		w.Write([]byte(`{"issuer":"` + issuer + `","jwks_uri":"` + p.URL + `/keys"}`))
	default:
		http.NotFound(w, r)
	}
}

func (p *publisher) set(keys string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys, p.status = keys, status
}

// trusting returns issuers that read the platform's keys from the location in rules.
func trusting(t *testing.T, rules storage.TrustRules, issuer string) (*rig, *Issuers) {
	r := newRig(t)
	e := r.entries[1]
	e.Issuer = issuer
	e.JWKS, e.JWKSURL, e.JWKSFile, e.Networks = rules.JWKS, rules.JWKSURL, rules.JWKSFile, rules.Networks
	r.entries = []storage.TrustEntry{e}
	return r, r.issuers(t, nil)
}

func (r *rig) wantKeys(t *testing.T, i *Issuers, s signer, issuer string, want Rule) {
	t.Helper()
	_, got := verify(t, i, s.sign(t, "", r.build().with(claims{"iss": issuer})))
	switch {
	case want == RuleKeys && got != nil && got.Rule == RuleKeys:
		if got.Code != oauth.TemporarilyUnavailable {
			t.Errorf("got %s, want temporarily_unavailable", got.Code)
		}
	default:
		wantRule(t, got, want)
	}
}

func TestKeysByURL(t *testing.T) {
	p := newPublisher(t, "")
	r, i := trusting(t, storage.TrustRules{JWKSURL: p.URL + "/keys"}, platform)
	p.set(published(t, r.platform), http.StatusOK)
	for range 3 {
		r.wantKeys(t, i, r.platform, platform, "")
	}
	if p.reads != 1 {
		t.Errorf("AS-205: read %d times for three assertions", p.reads)
	}
	next := newSigner(t, "p2")
	p.set(published(t, r.platform, next), http.StatusOK)
	t.Run("AS-205 an unknown key id has the keys read again, once in ten seconds", func(t *testing.T) {
		for range 3 {
			r.wantKeys(t, i, next, platform, RuleSignature)
		}
		r.now = r.now.Add(keysPause)
		r.wantKeys(t, i, next, platform, "")
		r.wantKeys(t, i, newSigner(t, "p3"), platform, RuleSignature)
		if p.reads != 2 {
			t.Errorf("read %d times", p.reads)
		}
	})
	t.Run("AS-205 a withdrawn key is good for ten minutes at most", func(t *testing.T) {
		p.set(published(t, next), http.StatusOK)
		r.now = r.now.Add(keysFresh)
		r.wantKeys(t, i, r.platform, platform, RuleSignature)
	})
	t.Run("AS-205 while the issuer is down its keys serve on, for a day", func(t *testing.T) {
		p.set("", http.StatusInternalServerError)
		r.now = r.now.Add(keysStale - time.Second)
		r.wantKeys(t, i, next, platform, "")
		r.now = r.now.Add(time.Second)
		r.wantKeys(t, i, next, platform, RuleKeys)
		p.set(published(t, next), http.StatusOK)
		r.now = r.now.Add(keysPause)
		r.wantKeys(t, i, next, platform, "")
	})
}

func TestKeysOutOfReach(t *testing.T) {
	p := newPublisher(t, "")
	r := newRig(t)
	many := strings.Repeat(`{"kty":"x"},`, issuerKeys.MaxKeys) + `{"kty":"x"}`
	for name, tt := range map[string]struct{ keys, path string }{
		"behind a redirect":         {published(t, r.platform), "/redirect"},
		"missing":                   {published(t, r.platform), "/missing"},
		"larger than 256 KiB":       {published(t, r.platform) + strings.Repeat(" ", maxKeySet), "/keys"},
		"more than a hundred":       {`{"keys":[` + many + `]}`, "/keys"},
		"no keys":                   {`{"keys":[]}`, "/keys"},
		"no JSON":                   {`<html>`, "/keys"},
		"with a private one":        {`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":"","d":"AA"}]}`, "/keys"},
		"with a symmetric one":      {`{"keys":[{"kty":"oct","k":"AAAA"}]}`, "/keys"},
		"for encryption":            {strings.ReplaceAll(published(t, r.platform), `"sig"`, `"enc"`), "/keys"},
		"of a size that is no good": {`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, "/keys"},
	} {
		t.Run("AS-205 keys "+name, func(t *testing.T) {
			r, i := trusting(t, storage.TrustRules{JWKSURL: p.URL + tt.path}, platform)
			p.set(tt.keys, http.StatusOK)
			r.wantKeys(t, i, r.platform, platform, RuleKeys)
		})
	}
}

func TestKeysByDiscovery(t *testing.T) {
	p := newPublisher(t, "")
	r, i := trusting(t, storage.TrustRules{}, p.URL)
	p.set(published(t, r.platform), http.StatusOK)
	r.wantKeys(t, i, r.platform, p.URL, "")
	t.Run("AS-205 metadata that name another issuer", func(t *testing.T) {
		p.issuer = "https://other.example"
		_, i := trusting(t, storage.TrustRules{}, p.URL)
		r.wantKeys(t, i, r.platform, p.URL, RuleKeys)
	})
}

// AS-205: an issuer's metadata cannot cause requests to this machine.
func TestKeysOfMetadata(t *testing.T) {
	for _, tt := range []struct {
		issuer, keys string
		ok           bool
	}{
		{"https://id.example", "https://id.example/keys", true},
		{"https://id.example", "https://keys.example/id", true},
		{"http://127.0.0.1:1", "http://127.0.0.1:1/keys", true},
		{"https://id.example", "http://id.example/keys", false},
		{"https://id.example", "http://127.0.0.1:9414/metrics", false},
		{"https://id.example", "http://localhost/keys", false},
		{"https://id.example", "http://[::1]/keys", false},
		{"https://id.example", "https://127.0.0.1/keys", false},
		{"https://id.example", "file:///etc/passwd", false},
		{"https://id.example", "", false},
	} {
		got, err := keysIn([]byte(`{"issuer":"`+tt.issuer+`","jwks_uri":"`+tt.keys+`"}`), tt.issuer)
		if (err == nil) != tt.ok || tt.ok && got != tt.keys {
			t.Errorf("%s of %s: got %q, %v", tt.keys, tt.issuer, got, err)
		}
	}
}

func TestKeysInAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys.json")
	r, i := trusting(t, storage.TrustRules{JWKSFile: name}, "https://kubernetes.default.svc")
	write := func(keys string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(keys), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.wantKeys(t, i, r.platform, "https://kubernetes.default.svc", RuleKeys)
	write(published(t, r.platform))
	r.now = r.now.Add(keysPause)
	r.wantKeys(t, i, r.platform, "https://kubernetes.default.svc", "")
	next := newSigner(t, "p2")
	write(published(t, next))
	r.now = r.now.Add(fileFresh)
	r.wantKeys(t, i, next, "https://kubernetes.default.svc", "")
	r.wantKeys(t, i, r.platform, "https://kubernetes.default.svc", RuleSignature)
}
