package authserver

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// listed reads the status list that a token names, verified, and returns its bit.
func (p *person) listed(t *testing.T, s *oauth.Status) (bit byte, claims statusClaims, etag string) {
	t.Helper()
	u, err := url.Parse(s.List.URI)
	if err != nil {
		t.Fatal(err)
	}
	pg := p.get(u.Path)
	if pg.status != 200 || pg.header.Get("Content-Type") != "application/statuslist+jwt" {
		t.Fatalf("got %d %v %s", pg.status, pg.header, pg.body)
	}
	payload, err := p.Server.keys.Verify(t.Context(), pg.body, statusType)
	if err != nil {
		t.Fatalf("the list is not signed: %v", err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	packed, err := base64.RawURLEncoding.DecodeString(claims.List.List)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	bits, err := io.ReadAll(z)
	if err != nil || len(bits) != statusListSize/8 {
		t.Fatalf("%d bytes, %v", len(bits), err)
	}
	return bits[s.List.Index/8] >> (s.List.Index % 8) & 1, claims, pg.header.Get("ETag")
}

func TestStatusList(t *testing.T) {
	r := newRig(t)
	p := r.person()
	first := r.verified(t, p.signIn()["access_token"].(string))
	second := r.verified(t, p.signIn()["access_token"].(string))
	if first.Status == nil || second.Status == nil || *first.Status == *second.Status {
		t.Fatalf("places: got %+v and %+v", first.Status, second.Status)
	}
	bit, claims, etag := p.listed(t, first.Status)
	if bit != 0 || claims.Subject != first.Status.List.URI || claims.TTL != 15 || claims.List.Bits != 1 || claims.Expires <= claims.IssuedAt || claims.Issuer != r.Issuer() {
		t.Errorf("a live grant: bit %d, %+v", bit, claims)
	}
	u, _ := url.Parse(first.Status.List.URI)
	if pg := p.get(u.Path, "If-None-Match", etag); pg.status != 304 || pg.body != "" {
		t.Errorf("a copy that is still good: got %d", pg.status)
	}
	if err := r.store.RevokeGrant(t.Context(), first.GrantID, storage.ByOperator, r.now()); err != nil {
		t.Fatal(err)
	}
	r.advance(statusFresh)
	if bit, _, changed := p.listed(t, first.Status); bit != 1 || changed == etag {
		t.Errorf("AS-226 a second after its revocation: bit %d, ETag changed %v", bit, changed != etag)
	}
	if bit, _, _ := p.listed(t, second.Status); bit != 0 {
		t.Error("another grant is cut off")
	}
	t.Run("a disabled user cuts off all of theirs", func(t *testing.T) {
		if err := r.Users().Disable(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		r.advance(statusFresh)
		if bit, _, _ := p.listed(t, second.Status); bit != 1 {
			t.Error("not cut off")
		}
	})
	t.Run("a list is made anew before it expires, and when the keys change", func(t *testing.T) {
		_, _, before := p.listed(t, first.Status)
		r.advance(4 * time.Minute)
		if _, _, after := p.listed(t, first.Status); after != before {
			t.Error("made anew too soon: copies are asked for in vain")
		}
		r.advance(2 * time.Minute)
		_, claims, after := p.listed(t, first.Status)
		if after == before || claims.Expires-r.now().Unix() < 9*60 {
			t.Errorf("after half its life: %+v", claims)
		}
	})
	for _, path := range []string{"/status/x", "/status/-1", "/status/99999999999999999999", "/status/9999999999"} {
		if pg := p.get(path); pg.status != 404 {
			t.Errorf("%s: got %d", path, pg.status)
		}
	}
	if pg := p.get("/status/77"); pg.status != 200 {
		t.Errorf("a list without grants: got %d", pg.status)
	}
}

func TestStatusListsOfStrangers(t *testing.T) {
	r := newRig(t)
	p := r.person()
	claims := r.verified(t, p.signIn()["access_token"].(string))
	if err := r.store.RevokeGrant(t.Context(), claims.GrantID, storage.ByOperator, r.now()); err != nil {
		t.Fatal(err)
	}
	kept, err := r.status.get(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range int64(200) {
		if _, err := r.status.get(t.Context(), 1000+n); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 200; each > 100<<10 {
		t.Errorf("AS-145 a list of nobody costs %d KB", each>>10)
	}
	if again, err := r.status.get(t.Context(), 0); again != kept || err != nil {
		t.Errorf("AS-145 who asks for lists of nobody makes us forget the one that matters: %v", err)
	}
}

func TestNoStatus(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Tokens.StatusTTL = -1 })
	p := r.person()
	if claims := r.verified(t, p.signIn()["access_token"].(string)); claims.Status != nil {
		t.Errorf("turned off: got %+v", claims.Status)
	}
	if pg := p.get("/status/0"); pg.status != 404 {
		t.Errorf("got %d", pg.status)
	}
	on := newRig(t)
	status, out := on.person().token(url.Values{"grant_type": {grantMachine}}, "Authorization", basic("machine", testSecret))
	if status != 200 {
		t.Fatalf("got %d %v", status, out)
	}
	if claims := on.verified(t, out["access_token"].(string)); claims.Status != nil {
		t.Errorf("a machine has no grant: got %+v", claims.Status)
	}
}

func TestStatusIsReplayed(t *testing.T) {
	r := newRig(t)
	p := r.person()
	first := p.signIn()
	_, a := p.token(refreshForm(first["refresh_token"]))
	_, b := p.token(refreshForm(first["refresh_token"]))
	if a["access_token"] != b["access_token"] || r.verified(t, a["access_token"].(string)).Status == nil {
		t.Errorf("AS-96: got %v and %v", a, b)
	}
}

func BenchmarkStatusList(b *testing.B) {
	lists := &statusLists{ttl: time.Minute, now: time.Now, entries: map[int64]*statusList{0: {checked: time.Now().Add(time.Hour)}}}
	for b.Loop() {
		if _, err := lists.get(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
}
