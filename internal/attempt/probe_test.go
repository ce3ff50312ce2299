package attempt

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestOnlyOwnProbesAreNotRecorded: OB-01. A request signed by this installation is not recorded. A
// signature that is copied to another request, expired, or made with another key hides nothing.
func TestOnlyOwnProbesAreNotRecorded(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	own := NewProber(bytes.Repeat([]byte{2}, 32), clock)
	foreign := NewProber(bytes.Repeat([]byte{3}, 32), clock)
	target := "https://auth.example.com:8443/callback/corp?a=b"
	for name, tt := range map[string]struct {
		by     *Prober
		change func(*http.Request)
		want   int
	}{
		"signed":                    {own, func(*http.Request) {}, 0},
		"a proxy drops the port":    {own, func(r *http.Request) { r.Host = "auth.example.com" }, 0},
		"of another installation":   {foreign, func(*http.Request) {}, 2},
		"unsigned":                  {own, func(r *http.Request) { r.Header.Del(ProbeHeader) }, 2},
		"not hex":                   {own, func(r *http.Request) { r.Header.Set(ProbeHeader, "1.x") }, 2},
		"another method":            {own, func(r *http.Request) { r.Method = "DELETE" }, 2},
		"another path":              {own, func(r *http.Request) { r.RequestURI = "/callback/other?a=b" }, 2},
		"another query":             {own, func(r *http.Request) { r.RequestURI = "/callback/corp?a=c" }, 2},
		"another host":              {own, func(r *http.Request) { r.Host = "evil.example" }, 2},
		"with a token":              {own, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 2},
		"two minutes later":         {own, func(*http.Request) { now = now.Add(2 * time.Minute) }, 2},
		"from a clock far in front": {own, func(*http.Request) { now = now.Add(-2 * time.Minute) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			now = noon
			store := testStore(t)
			r := testRecorder(store, &now, new(bytes.Buffer))
			r.c.Probes = own
			sent, err := http.NewRequest("POST", target, nil)
			if err != nil {
				t.Fatal(err)
			}
			tt.by.Sign(sent)
			got := httptest.NewRequest("POST", target, nil)
			got.Header, got.RequestURI = sent.Header, "/callback/corp?a=b"
			tt.change(got)
			r.End(got, request.New(NewReference(), now, netip.MustParseAddr("192.0.2.1")),
				Taken{Kind: Token, Path: "/token", Answer: Answer{Status: 400, Error: "invalid_request"}})
			r.Refused(got, netip.MustParseAddr("198.51.100.1"), oauth.Decision{Status: 401},
				Presented{State: TokenForeign}, nil)
			r.Write(context.Background())
			found, err := Finder{Store: store, Now: clock}.Find(context.Background(), Query{})
			if err != nil || len(found) != tt.want {
				t.Errorf("OB-01: got %d attempts, %v, want %d", len(found), err, tt.want)
			}
		})
	}
}
