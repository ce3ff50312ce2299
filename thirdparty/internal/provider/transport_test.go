package provider

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

func fetch(t *testing.T, c Settings, at string) error {
	t.Helper()
	client := newTransport(c, Options{ProductName: "mcp-authd"}).client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func TestAddresses(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "10.0.0.1", "172.16.0.1",
		"192.168.1.1", "169.254.169.254", "100.64.0.1",
		"0.0.0.0", "[::]", "[fe80::1]", "[fd00::1]", "[fd00:ec2::254]", "224.0.0.1", "[64:ff9b::7f00:1]",
		"198.18.0.1", "[2002:7f00:1::]",
	} {
		t.Run("SP-08 SP-09 what the provider's documents name: "+host, func(t *testing.T) {
			err := fetch(t, Settings{Issuer: "https://idp.example.com"}, "https://"+host+":9/x")
			wantError(t, err, ErrGarbage)
		})
	}
	for _, host := range []string{"169.254.169.254", "0.0.0.0", "[fe80::1]", "224.0.0.1", "[64:ff9b::a9fe:a9fe]"} {
		t.Run("SP-09 not even when configured: "+host, func(t *testing.T) {
			wantError(t, fetch(t, Settings{Issuer: "https://" + host}, "https://"+host+"/x"), ErrGarbage)
		})
	}
	t.Run("SP-09 a network that the operator names", func(t *testing.T) {
		loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		// allowed, but nothing listens
		wantError(t,
			fetch(t, Settings{Issuer: "https://idp.example.com", Networks: loopback}, "https://127.0.0.1:1/x"),
			ErrUnreachable)
		wantError(t,
			fetch(t, Settings{Issuer: "https://idp.example.com", Networks: loopback}, "https://10.0.0.1:1/x"),
			ErrGarbage)
	})
	t.Run("SP-09 the configured host, and no other port of it", func(t *testing.T) {
		// allowed, but nothing listens
		wantError(t, fetch(t, Settings{Issuer: "https://127.0.0.1:1"}, "https://127.0.0.1:1/x"), ErrUnreachable)
		wantError(t, fetch(t, Settings{Issuer: "https://127.0.0.1:1"}, "https://127.0.0.1:2/x"), ErrGarbage)
	})
	t.Run("SP-09 only https, but for loopback that was configured", func(t *testing.T) {
		u := fakeidp.Start(t)
		wantError(t, fetch(t, Settings{Issuer: u.URL}, u.URL+"/keys"), nil)
		wantError(t, fetch(t, Settings{Issuer: "https://idp.example.com"}, u.URL+"/keys"), ErrGarbage)
		wantError(t, fetch(t, Settings{Issuer: "http://idp.example.com"}, "http://idp.example.com/keys"), ErrGarbage)
	})
}

func TestRebinding(t *testing.T) {
	hit := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer s.Close()
	// The address of the connection counts, however the name is resolved.
	tr := dialing(nil).(*http.Transport)
	inner := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return inner(ctx, network, s.Listener.Addr().String())
	}
	carrier := newTransport(Settings{}, Options{})
	carrier.guarded = tr
	resp, err := carrier.client().Get("https://public.example.com/")
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrGarbage) || hit {
		t.Errorf("SP-11 AS-161: got %v, reached %v", err, hit)
	}
}

func TestBounds(t *testing.T) {
	u := fakeidp.Start(t)
	var told []error
	c := newTransport(Settings{Issuer: u.URL}, Options{
		ProductName: "the-product", Asked: func(_ time.Duration, err error) { told = append(told, err) },
	}).client()
	if c.Timeout != requestTimeout {
		t.Errorf("the client has %v", c.Timeout)
	}
	get := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL+"/keys", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for _, tt := range []struct {
		name string
		size int
		ctx  context.Context
		want error
	}{
		{"a document", maxDocument, t.Context(), nil},
		{"a document that is too large", maxDocument + 1, t.Context(), ErrGarbage},
		{"a list", maxList, listing(t.Context()), nil},
		{"a list that is too large", maxList + 1, listing(t.Context()), ErrGarbage},
	} {
		t.Run("AS-223 SP-08 "+tt.name, func(t *testing.T) {
			u.Fail(fakeidp.Keys, fakeidp.Fault{Body: strings.Repeat(" ", tt.size)})
			told = nil
			wantError(t, get(tt.ctx), tt.want)
			if len(told) != 1 || !errors.Is(told[0], tt.want) {
				t.Errorf("OB-07: told of %v", told)
			}
		})
	}
	t.Run("AS-223 SP-08 a small answer that unpacks to a large one", func(t *testing.T) {
		u.Fail(fakeidp.Keys,
			fakeidp.Fault{Body: string(gzipped(t, maxDocument*100)), Header: http.Header{"Content-Encoding": {"gzip"}}})
		wantError(t, get(t.Context()), ErrGarbage)
	})
	for _, r := range u.Requests(fakeidp.Keys) {
		if r.Header.Get("User-Agent") != "the-product" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("asked as %q for %q", r.Header.Get("User-Agent"), r.Header.Get("Accept"))
		}
	}
}

func TestErrorsRevealNothing(t *testing.T) {
	// Whoever writes the metadata must not learn about internal hosts: an open port, a closed port
	// and an absent host look the same.
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for _, at := range []string{s.URL + "/x", "https://127.0.0.1:1/x", "https://10.255.255.1/x"} {
		err := fetch(t, Settings{Issuer: "https://idp.example.com"}, at)
		if !errors.Is(err, ErrGarbage) || errors.Is(err, ErrUnreachable) {
			t.Errorf("SP-12 %s: got %v", at, err)
		}
	}
}

func gzipped(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
