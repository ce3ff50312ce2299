package authserver

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	assertionType       = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionSkew       = 30 * time.Second
	assertionTTL        = time.Hour
	strangeAssertionTTL = 5 * time.Minute
	assertionBurst      = 300
	assertionWindow     = time.Minute
)

// Security L19: an assertion is a row until it expires, so a client that registered itself may use
// only few and short ones. The operator's clients have neither limit.
func TestAssertionRows(t *testing.T) {
	r, signers := newAssertionRig(t)
	self, operated := signers["keyed-es"], signers["keyed-ed"]
	c, err := r.store.Client(t.Context(), self.id)
	if err != nil {
		t.Fatal(err)
	}
	self.id, c.ID, c.Source = "keyed-self", "keyed-self", storage.SourceDynamic
	c.GrantTypes = []string{oauth.GrantCode, oauth.GrantRefresh}
	if err := r.store.PutClient(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	// revoke authenticates, and does nothing else.
	revoke := func(s assertionSigner, jti string, life time.Duration) (int, http.Header, string) {
		t.Helper()
		claims := changed(r.claims(s.id, jti), map[string]any{"exp": r.now().Add(life).Unix()})
		res, err := http.PostForm(r.Issuer()+"/revoke", url.Values{
			"token": {"x"}, "client_assertion_type": {assertionType}, "client_assertion": {s.sign(t, claims, nil)},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(body)
	}
	for _, tt := range []struct {
		signer assertionSigner
		life   time.Duration
		want   string // part of the description; "": accepted
	}{
		{self, strangeAssertionTTL + assertionSkew, ""},
		{self, strangeAssertionTTL + assertionSkew + time.Second, "is valid for more than five minutes"},
		{operated, assertionTTL + assertionSkew, ""},
		{operated, assertionTTL + assertionSkew + time.Second, "is valid for more than an hour"},
	} {
		status, _, body := revoke(tt.signer, "life "+tt.life.String(), tt.life)
		if ok := status == 200; ok != (tt.want == "") || !strings.Contains(body, tt.want) ||
			!ok && !strings.Contains(body, "invalid_client") {
			t.Errorf("%s, valid for %v: got %d %s, want %q", tt.signer.id, tt.life, status, body, tt.want)
		}
	}
	r.advance(assertionWindow)
	for i := range assertionBurst {
		if status, _, body := revoke(self, fmt.Sprint("own ", i), time.Minute); status != 200 {
			t.Fatalf("assertion %d: got %d %s", i, status, body)
		}
	}
	for range 2 {
		status, header, body := revoke(self, "one too many", time.Minute)
		if status != http.StatusTooManyRequests || !strings.Contains(body, "slow_down") ||
			header.Get("Retry-After") == "" {
			t.Errorf("beyond the allowance: got %d %v %s", status, header, body)
		}
	}
	stranger := assertionSigner{self.id, operated.alg, operated.key}
	if status, _, _ := revoke(stranger, "not its key", time.Minute); status != http.StatusUnauthorized {
		t.Errorf("the key of another client: got %d, want 401: it must not count", status)
	}
	for i := range assertionBurst + 1 {
		if status, _, body := revoke(operated, fmt.Sprint("operated ", i), time.Minute); status != 200 {
			t.Fatalf("the operator's client, assertion %d: got %d %s", i, status, body)
		}
	}
	r.advance(assertionWindow / assertionBurst)
	if status, _, body := revoke(self, "one too many", time.Minute); status != 200 {
		t.Errorf("after the wait: got %d %s", status, body)
	}
}
