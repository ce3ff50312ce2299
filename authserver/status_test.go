package authserver

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
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
	if bit != 0 || claims.Subject != first.Status.List.URI || claims.TTL != 7 || claims.List.Bits != 1 ||
		claims.Expires <= claims.IssuedAt || claims.Issuer != r.Issuer() {
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
	t.Run("a list is made again before it expires, and when the keys change", func(t *testing.T) {
		_, _, before := p.listed(t, first.Status)
		r.advance(4 * time.Minute)
		if _, _, after := p.listed(t, first.Status); after != before {
			t.Error("made again too soon: copies are requested in vain")
		}
		r.advance(2 * time.Minute)
		_, claims, after := p.listed(t, first.Status)
		if after == before || claims.Expires-r.now().Unix() <= 5*60 {
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
		t.Errorf("AS-145 a list without grants costs %d KB", each>>10)
	}
	if again, err := r.status.get(t.Context(), 0); again != kept || err != nil {
		t.Errorf("AS-145 requests for lists without grants make the server forget a list with grants: %v", err)
	}
}

// Operations L: behind a load balancer a resource server asks another replica each time. It gets
// the same bytes while nothing changes, even if the clocks differ a little. The same is true after
// a change of the grants or of the signing key.
func TestStatusListsOfReplicas(t *testing.T) {
	one := newRig(t)
	two, err := Assemble(t.Context(), Config{
		Issuer: one.Issuer(), Store: one.store, SecretKeys: one.cfg.SecretKeys, Resources: one.cfg.Resources,
		Now: func() time.Time { return one.now().Add(1700 * time.Millisecond) },
	})
	if err != nil {
		t.Fatal(err)
	}
	p := one.person()
	claims := one.verified(t, p.signIn()["access_token"].(string))
	forms, windows := map[string]bool{}, map[string]bool{}
	same := func(when string) {
		t.Helper()
		for n := range int64(20) {
			a, err := one.status.get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			b, err := two.status.get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			forms[a.etag], windows[fmt.Sprint(n, a.begun)] = true, true
			if a.etag != b.etag || !bytes.Equal(a.token, b.token) {
				t.Errorf("AS-226 %s: two replicas have different forms of list %d", when, n)
			}
		}
	}
	one.advance(17 * time.Second)
	same("at first")
	one.advance(30 * time.Second)
	same("later")
	if len(forms) != len(windows) {
		t.Errorf("AS-226 in %d windows without a change, lists had %d forms", len(windows), len(forms))
	}
	if err := one.store.RevokeGrant(t.Context(), claims.GrantID, storage.ByOperator, one.now()); err != nil {
		t.Fatal(err)
	}
	one.advance(2 * time.Second)
	same("after a revocation")
	if len(forms) != len(windows)+1 {
		t.Errorf("AS-226 after a revocation there were %d forms in %d windows, want one more", len(forms), len(windows))
	}
	if err := one.Keys().Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.advance(20 * time.Second)
	same("after a rotation")
	one.advance(7 * time.Minute)
	same("in the next window")
}

// A list is created again when half of its life is over, each list at another time: otherwise all
// lists would change for every resource server at once.
func TestStatusWindows(t *testing.T) {
	l := &statusLists{ttl: 7 * time.Second}
	begins := map[time.Time]int{}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for n := range int64(1000) {
		for second := range time.Duration(700) {
			at := now.Add(second * time.Second)
			begin := l.window(n, at)
			if age := at.Sub(begin); age < 0 || age >= l.life()/2 {
				t.Fatalf("list %d at %v began %v ago", n, second, age)
			}
		}
		begins[l.window(n, now)]++
	}
	for begin, n := range begins {
		if n > 10 {
			t.Errorf("%d of 1000 lists begin at %v", n, begin)
		}
	}
}

// As many lists are cached as fit, and a cached copy is not signed again.
func TestStatusShelf(t *testing.T) {
	r := newRig(t)
	first := map[int64]*statusList{}
	for n := range int64(300) {
		e, err := r.status.get(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		first[n] = e
	}
	r.advance(2 * statusFresh)
	for n, before := range first {
		if e, err := r.status.get(t.Context(), n); err != nil ||
			e.begun.Equal(before.begun) && &e.token[0] != &before.token[0] {
			t.Fatalf("AS-145 list %d was made again, %v", n, err)
		}
	}
	s := newStatusShelf(100 * 1024)
	for n := range int64(1000) {
		s.put(n, &statusList{token: make([]byte, 512), quiet: n%20 > 0})
	}
	if s.size > s.budget || len(s.other) != 50 || len(s.quiet) != 50 {
		t.Errorf("AS-145 %d bytes for %d quiet lists and %d others", s.size, len(s.quiet), len(s.other))
	}
	for n := range int64(200) {
		s.put(20*n, &statusList{token: make([]byte, 512)})
	}
	if s.size > s.budget || len(s.quiet) != 0 || len(s.other) != 100 {
		t.Errorf("AS-145 %d bytes for %d quiet lists and %d others", s.size, len(s.quiet), len(s.other))
	}
}

// A cache weakens a tag when it compresses, and sends several tags.
func TestStatusOfACache(t *testing.T) {
	r := newRig(t)
	p := r.person()
	pg := p.get("/status/0")
	tag := pg.header.Get("ETag")
	if got := pg.header.Get("Cache-Control"); got != "public, max-age=1" {
		t.Errorf("Cache-Control is %q: it adds to the delay of a revocation", got)
	}
	for _, header := range []string{tag, "W/" + tag, `"other", ` + tag} {
		if pg := p.get("/status/0", "If-None-Match", header); pg.status != 304 || pg.header.Get("ETag") != tag ||
			pg.header.Get("Cache-Control") == "" {
			t.Errorf("If-None-Match: %s: got %d %v", header, pg.status, pg.header)
		}
	}
	if pg := p.get("/status/0", "If-None-Match", `"other"`); pg.status != 200 {
		t.Errorf("another tag: got %d", pg.status)
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
	status, out := on.person().token(url.Values{"grant_type": {oauth.GrantClientCredentials}}, "Authorization",
		basic("machine", testSecret))
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
	lists := &statusLists{ttl: time.Minute, now: time.Now, shelf: newStatusShelf(statusBudget)}
	lists.shelf.put(0, &statusList{checked: time.Now().Add(time.Hour)})
	for b.Loop() {
		if _, err := lists.get(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
}
