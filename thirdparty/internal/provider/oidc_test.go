package provider

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func TestIDToken(t *testing.T) {
	claim := func(name string, value any) func(*fakeidp.Behaviour) {
		return func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, c map[string]any) {
				if c[name] = value; value == nil {
					delete(c, name)
				}
			}
		}
	}
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	sign := func(s fakeidp.Signing) func(*fakeidp.Behaviour) {
		return func(b *fakeidp.Behaviour) { b.Sign = s }
	}
	for _, tt := range []struct {
		name string
		edit func(*fakeidp.Behaviour)
		want error
	}{
		{"as it should be", nil, nil},
		{"another issuer", claim("iss", "https://evil.example.com"), ErrGarbage},
		{"no issuer", claim("iss", nil), ErrGarbage},
		{"another audience", claim("aud", "another-client"), ErrGarbage},
		{"audiences with us among them, and no azp", claim("aud", []string{"client-of-mcp-authd", "another"}),
			ErrGarbage},
		{"another azp", claim("azp", "another-client"), ErrGarbage},
		{"our azp", claim("azp", "client-of-mcp-authd"), nil},
		{"no audience", claim("aud", nil), ErrGarbage},
		{"another nonce", claim("nonce", "another"), ErrGarbage},
		{"no nonce", claim("nonce", nil), ErrGarbage},
		{"expired for 50 seconds", claim("exp", in(-50*time.Second)), nil},
		{"expired for 70 seconds", claim("exp", in(-70*time.Second)), ErrGarbage},
		{"no expiry", claim("exp", nil), ErrGarbage},
		{"issued in 50 seconds", claim("iat", in(50*time.Second)), nil},
		{"issued in 70 seconds", claim("iat", in(70*time.Second)), ErrGarbage},
		{"good in 70 seconds", claim("nbf", in(70*time.Second)), ErrGarbage},
		{"another at_hash", claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), ErrGarbage},
		{"no at_hash", claim("at_hash", nil), nil},
		{"no subject", claim("sub", nil), ErrGarbage},
		{"an empty subject", claim("sub", ""), ErrGarbage},
		{"a subject with a line end", claim("sub", "a\nb"), ErrGarbage},
		{"a subject without end", claim("sub", strings.Repeat("x", 256)), ErrGarbage},
		{"a subject that is a list", claim("sub", []string{"a"}), ErrGarbage},
		{"more claims than the limit", claim("x", strings.Repeat("x", maxClaims)), ErrGarbage},
		{"algorithm none", sign(fakeidp.SignNone), ErrGarbage},
		{"HS256 with the client secret", sign(fakeidp.SignHMAC), ErrGarbage},
		{"another key under the same id", sign(fakeidp.SignWrongKey), ErrGarbage},
		{"an unknown key", sign(fakeidp.SignUnknown), ErrGarbage},
		{"half a signature", sign(fakeidp.SignTruncated), ErrGarbage},
		{"none at all", func(b *fakeidp.Behaviour) { b.NoIDToken = true }, ErrGarbage},
		{"a provider whose clock is 50 seconds fast", func(b *fakeidp.Behaviour) { b.Skew = 50 * time.Second }, nil},
		{"a provider whose clock is 50 seconds slow", func(b *fakeidp.Behaviour) { b.Skew = -50 * time.Second }, nil},
		{"a provider whose clock is an hour fast", func(b *fakeidp.Behaviour) { b.Skew = time.Hour }, ErrGarbage},
		{"a provider whose clock is an hour slow", func(b *fakeidp.Behaviour) { b.Skew = -time.Hour }, ErrGarbage},
		{"user info about another person", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { c["sub"] = fakeidp.Bob.Subject }
		}, ErrGarbage},
		{"user info about no person", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { delete(c, "sub") }
		}, ErrGarbage},
		{"user info with more claims than the limit", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { c["x"] = strings.Repeat("x", maxClaims) }
		}, ErrGarbage},
		{"signed user info", func(b *fakeidp.Behaviour) { b.SignedUserInfo = true }, nil},
	} {
		t.Run("AS-223 AS-225 OIDC Core 3.1.3.7: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			if tt.edit != nil {
				u.Behave(tt.edit)
			}
			_, _, err := travel(t, connect(t, toFake(u)), u, nil)
			wantError(t, err, tt.want)
		})
	}
}

func TestSignedUserInfo(t *testing.T) {
	u := fakeidp.Start(t)
	c := connect(t, toFake(u))
	got, _ := signedIn(t, c, u)
	for _, tt := range []struct {
		name string
		edit func(*fakeidp.Behaviour)
		want error
	}{
		{"good", func(*fakeidp.Behaviour) {}, nil},
		{"with another key", func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignWrongKey }, ErrGarbage},
		{"about another person", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { delete(c, "sub") }
		}, ErrGarbage},
		{"unsigned", func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignNone }, ErrGarbage},
		{"for another client", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { c["aud"] = "another" }
		}, ErrGarbage},
		{"for us among others", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { c["aud"] = []string{"another", u.ClientID} }
		}, nil},
		{"by another issuer", func(b *fakeidp.Behaviour) {
			b.EditUserInfo = func(c map[string]any) { c["iss"] = "https://evil.example.com" }
		}, ErrGarbage},
	} {
		u.Behave(func(b *fakeidp.Behaviour) { *b = fakeidp.Behaviour{SignedUserInfo: true}; tt.edit(b) })
		t.Run("OIDC Core 5.3.2 signed user info: "+tt.name, func(t *testing.T) {
			_, err := c.Inspect(t.Context(), got)
			wantError(t, err, tt.want)
		})
	}
}

func TestKeyRotation(t *testing.T) {
	u := fakeidp.Start(t)
	c := connect(t, toFake(u))
	signedIn(t, c, u)
	u.RotateKeys()
	t.Run("AS-223 new keys mid-flow are read", func(t *testing.T) {
		if _, _, err := travel(t, c, u, nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("AS-223 keys that cannot be read are an outage, not a bad token", func(t *testing.T) {
		u.RotateKeys()
		u.Fail(fakeidp.Keys, fakeidp.Down)
		_, _, err := travel(t, c, u, nil)
		wantError(t, err, ErrUnreachable)
		u.Heal()
	})
	t.Run("SP-08 made-up keys do not make us ask without end", func(t *testing.T) {
		if _, _, err := travel(t, c, u, nil); err != nil {
			t.Fatal(err)
		}
		u.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignUnknown })
		u.Forget()
		for range 50 {
			if _, err := c.VerifyLogout(t.Context(), u.LogoutToken("", "sid", nil)); err == nil {
				t.Fatal("accepted")
			}
		}
		if n := u.Calls(fakeidp.Keys); n > 10 {
			t.Errorf("the keys were read %d times", n)
		}
		u.Behave(func(b *fakeidp.Behaviour) { b.Sign = fakeidp.SignGood })
		if _, err := c.VerifyLogout(t.Context(), u.LogoutToken("", "sid", nil)); err != nil {
			t.Errorf("a key that is known is good all the while: %v", err)
		}
	})
}

func TestMetadata(t *testing.T) {
	internal := fakeidp.Start(t) // another port of this machine that is not configured
	for _, tt := range []struct {
		name string
		edit func(map[string]any)
		want error
	}{
		{"as they should be", func(map[string]any) {}, nil},
		{"another issuer", func(m map[string]any) { m["issuer"] = "https://evil.example.com" }, ErrGarbage},
		{"the issuer with a slash", func(m map[string]any) { m["issuer"] = m["issuer"].(string) + "/" }, ErrGarbage},
		{"no issuer", func(m map[string]any) { delete(m, "issuer") }, ErrGarbage},
		{"no token endpoint", func(m map[string]any) { delete(m, "token_endpoint") }, ErrGarbage},
		{"no keys", func(m map[string]any) { delete(m, "jwks_uri") }, ErrGarbage},
		{"an authorization endpoint that is script",
			func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, ErrGarbage},
		{"an authorization endpoint without TLS",
			func(m map[string]any) { m["authorization_endpoint"] = "http://idp.example.com/a" }, ErrGarbage},
		{"a token endpoint without TLS", func(m map[string]any) { m["token_endpoint"] = "http://idp.example.com/t" },
			ErrGarbage},
		{"a token endpoint with a password",
			func(m map[string]any) { m["token_endpoint"] = "https://a:b@idp.example.com/t" }, ErrGarbage},
		{"keys on another port of this machine", func(m map[string]any) { m["jwks_uri"] = internal.URL + "/keys" },
			ErrGarbage},
		{"keys of the cloud's metadata service",
			func(m map[string]any) { m["jwks_uri"] = "https://169.254.169.254/latest" }, ErrGarbage},
		{"a token endpoint in a private network",
			func(m map[string]any) { m["token_endpoint"] = "https://10.0.0.1/token" }, ErrGarbage},
		{"user info in a private network", func(m map[string]any) { m["userinfo_endpoint"] = "https://[fd00::1]/u" },
			ErrGarbage},
		{"members of other types", func(m map[string]any) { m["scopes_supported"] = map[string]any{} }, ErrGarbage},
	} {
		t.Run("SP-08 SP-09 OIDC Discovery 4.3: "+tt.name, func(t *testing.T) {
			u := fakeidp.Start(t)
			u.Behave(func(b *fakeidp.Behaviour) { b.EditMetadata = tt.edit })
			_, _, err := travel(t, connect(t, toFake(u)), u, nil)
			wantError(t, err, tt.want)
		})
	}
	if n := len(internal.Requests("")); n != 0 {
		t.Errorf("SP-08: the internal server had %d requests", n)
	}
}

func TestDiscoveryOnce(t *testing.T) {
	u := fakeidp.Start(t)
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	c := connectIn(t, toFake(u), Options{Now: clock})
	if u.Calls("") != 0 {
		t.Error("the provider was asked before it was needed")
	}
	answer := make(chan struct{})
	u.Fail(fakeidp.Discovery, fakeidp.Fault{Held: answer})
	look := func() error { return c.CheckIssuer(t.Context(), u.URL) }
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if err := look(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Until(t, "the metadata are asked for", func() bool { return u.Calls(fakeidp.Discovery) > 0 })
	close(answer)
	all.Wait()
	if n := u.Calls(fakeidp.Discovery); n != 1 {
		t.Errorf("32 at once read the metadata %d times", n)
	}
	pass(59 * time.Minute)
	if err := look(); err != nil || u.Calls(fakeidp.Discovery) != 1 {
		t.Errorf("within the hour: %v, read %d times", err, u.Calls(fakeidp.Discovery))
	}
	pass(2 * time.Minute)
	u.Fail(fakeidp.Discovery, fakeidp.Down)
	if err := look(); err != nil {
		t.Errorf("AS-223 old metadata hold while the provider is down: %v", err)
	}
	u.Fail(fakeidp.Discovery, fakeidp.HTML)
	wantError(t, look(), ErrGarbage)
	pass(24 * time.Hour)
	u.Fail(fakeidp.Discovery, fakeidp.Down)
	wantError(t, look(), ErrUnreachable)
	u.Heal()
	if err := look(); err != nil {
		t.Errorf("healed: %v", err)
	}
}

func TestLogoutToken(t *testing.T) {
	u := fakeidp.Start(t)
	c := connect(t, toFake(u))
	signedIn(t, c, u) // keys are known
	set := func(name string, value any) func(h, c map[string]any) {
		return func(_, c map[string]any) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}
	}
	typ := func(value any) func(h, c map[string]any) {
		return func(h, _ map[string]any) {
			if h["typ"] = value; value == nil {
				delete(h, "typ")
			}
		}
	}
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for _, tt := range []struct {
		name     string
		sub, sid string
		edit     func(h, c map[string]any)
		want     error
	}{
		{"session and subject", "sub-alice", "sid-1", nil, nil},
		{"session alone", "", "sid-1", nil, nil},
		{"subject alone", "sub-alice", "", nil, nil},
		{"neither", "", "", nil, ErrGarbage},
		{"no expiry, as before it was asked for", "", "sid-1", set("exp", nil), nil},
		{"type JWT", "", "sid-1", typ("JWT"), nil},
		{"no type", "", "sid-1", typ(nil), nil},
		{"type of an access token", "", "sid-1", typ("at+jwt"), ErrGarbage},
		{"a nonce: an ID token", "", "sid-1", set("nonce", "n"), ErrGarbage},
		{"a nonce that is no string", "", "sid-1", set("nonce", false), ErrGarbage},
		{"no events: an ID token", "", "sid-1", set("events", nil), ErrGarbage},
		{"another event", "", "sid-1",
			set("events", map[string]any{"https://schemas.openid.net/secevent/risc": map[string]any{}}), ErrGarbage},
		{"an event that is a string", "", "sid-1", set("events", map[string]any{logoutEvent: "yes"}), ErrGarbage},
		{"another issuer", "", "sid-1", set("iss", "https://evil.example.com"), ErrGarbage},
		{"another audience", "", "sid-1", set("aud", "another"), ErrGarbage},
		{"no jti", "", "sid-1", set("jti", nil), ErrGarbage},
		{"a jti without end", "", "sid-1", set("jti", strings.Repeat("x", 300)), ErrGarbage},
		{"no iat", "", "sid-1", set("iat", nil), ErrGarbage},
		{"from the future", "", "sid-1", set("iat", in(2*time.Minute)), ErrGarbage},
		{"of a quarter of an hour ago", "", "sid-1", set("iat", in(-15*time.Minute)), ErrGarbage},
		{"expired", "", "sid-1", set("exp", in(-2*time.Minute)), ErrGarbage},
		{"expired within the leeway", "", "sid-1", set("exp", in(-30*time.Second)), nil},
	} {
		t.Run("AS-219 OIDC BCL 2.6: "+tt.name, func(t *testing.T) {
			got, err := c.VerifyLogout(t.Context(), u.LogoutToken(tt.sub, tt.sid, tt.edit))
			wantError(t, err, tt.want)
			if tt.want == nil &&
				(got.ID == "" || got.Subject != tt.sub || got.SessionID != tt.sid || !got.ForgetAt.After(time.Now())) {
				t.Errorf("got %+v", got)
			}
		})
	}
	for _, s := range []fakeidp.Signing{fakeidp.SignNone, fakeidp.SignHMAC, fakeidp.SignWrongKey} {
		t.Run("AS-219 OIDC BCL 2.6: signed "+string(s), func(t *testing.T) {
			u.Behave(func(b *fakeidp.Behaviour) { b.Sign = s })
			_, err := c.VerifyLogout(t.Context(), u.LogoutToken("sub-alice", "sid-1", nil))
			wantError(t, err, ErrGarbage)
		})
	}
	for _, text := range []string{"", ".", "..", "a.b.c", strings.Repeat("a", maxTokenSize+1)} {
		_, err := c.VerifyLogout(t.Context(), text)
		wantError(t, err, ErrGarbage)
	}
}

func FuzzLogoutToken(f *testing.F) {
	for _, s := range []string{"", "a.b.c", "eyJ0eXAiOiJsb2dvdXQrand0In0.e30.", "e30.e30.e30"} {
		f.Add(s)
	}
	c, err := New(Settings{Type: "oidc", Issuer: "http://127.0.0.1:1", ClientID: "c"}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	c.(*openID).locate = func(context.Context) (*endpoints, error) {
		return &endpoints{
			issuer: "http://127.0.0.1:1", algorithms: []string{"ES256"},
			keys: &oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{key.Public()}}}, nil
	}
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := c.VerifyLogout(t.Context(), token); !errors.Is(err, ErrGarbage) {
			t.Errorf("got %v", err)
		}
	})
}
