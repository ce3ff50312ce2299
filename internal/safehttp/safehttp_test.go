package safehttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestAddresses(t *testing.T) {
	c := New(Options{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "10.0.0.1", "172.16.0.1",
		"192.168.1.1", "169.254.169.254",
		"0.0.0.0", "[::]", "100.64.0.1", "[fe80::1]", "[fd00::1]", "224.0.0.1", "[64:ff9b::7f00:1]", "192.0.0.8",
		"198.18.0.1",
		"[fd00:ec2::254]", "[2002:7f00:1::]", "[::127.0.0.1]", "255.255.255.255", "192.88.99.1", "[ff02::1]",
	} {
		t.Run("AS-161 SP-09 refused: "+host, func(t *testing.T) {
			_, err := c.Get(t.Context(), "https://"+host+":9/x", Validators{})
			if !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNeverPermitted) {
				t.Errorf("got %v, want ErrNeverPermitted before connecting", err)
			}
		})
	}
	// Some resolvers accept these spellings of addresses. The client must refuse them or fail to
	// resolve them, but never connect.
	for _, host := range []string{
		"2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "127.1", "127.0.0.1.", "①②⑦.⓪.⓪.①",
	} {
		t.Run("AS-161 never connected to: "+host, func(t *testing.T) {
			_, err := c.Get(t.Context(), "http://"+host+":9/x", Validators{})
			var op *net.OpError
			if err == nil || errors.As(err, &op) && op.Op == "dial" && !errors.Is(err, ErrRefused) && !isDNS(err) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

func isDNS(err error) bool {
	var d *net.DNSError
	return errors.As(err, &d)
}

// rebinding returns a resolver that alternates between a public address and this machine.
func rebinding(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	var asked atomic.Int32
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			if q.Type == dnsmessage.TypeA {
				address := [4]byte{127, 0, 0, 1}
				if asked.Add(1) == 1 {
					address = [4]byte{192, 0, 2, 1} // TEST-NET-1: also special-use, and unreachable
				}
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
					Body:   &dnsmessage.AResource{A: address},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestRebinding(t *testing.T) {
	hit := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New(Options{Resolver: rebinding(t)})
	for range 3 { // each address of the name is checked when connecting
		if _, err := c.Get(t.Context(), "http://rebind.example.com:"+port+"/", Validators{}); !errors.Is(err,
			ErrRefused) || errors.Is(err, ErrNeverPermitted) {
			t.Errorf("SP-09 SP-12 AS-161 DNS rebinding: got %v, want a refusal that says nothing of the name", err)
		}
	}
	if hit {
		t.Error("SP-09: the server on loopback was reached")
	}
}

func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		w.Write([]byte("ok"))
	}))
	defer proxy.Close()
	at, _ := url.Parse(proxy.URL)
	c := New(Options{Proxy: at})
	a, err := c.Get(t.Context(), "http://client.example.com/x", Validators{})
	if err != nil || string(a.Body) != "ok" || len(asked) != 1 {
		t.Fatalf("through the proxy: %q, %v, asked %q", a.Body, err, asked)
	}
	for _, host := range []string{
		"127.0.0.1", "[::1]", "169.254.169.254", "localhost", "intranet", "a.localhost", "metadata.google.internal",
		"0x7f.1", "2130706433", "10.1", "db.local.",
	} {
		t.Run("AS-161 not asked of the proxy: "+host, func(t *testing.T) {
			if _, err := c.Get(t.Context(), "http://"+host+"/x", Validators{}); !errors.Is(err, ErrRefused) {
				t.Errorf("got %v", err)
			}
		})
	}
	if len(asked) != 1 {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

func TestGet(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/large":
			w.Write([]byte(strings.Repeat("a", 1001)))
		case "/missing":
			http.NotFound(w, r)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		case "/etag":
			w.Header().Set("ETag", `"v1"`)
			if r.Header.Get("If-None-Match") == `"v1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Write([]byte("ok"))
		default:
			w.Write([]byte("ok"))
		}
	}))
	defer s.Close()
	c := New(Options{InsecureLoopback: true, MaxBytes: 1000})
	for path, want := range map[string]error{
		"/ok": nil, "/redirect": ErrStatus, "/large": ErrTooLarge, "/missing": ErrStatus, "/304": ErrStatus,
		"/etag": nil,
	} {
		t.Run("AS-160 AS-162 SP-10 "+path, func(t *testing.T) {
			if a, err := c.Get(t.Context(), s.URL+path, Validators{}); !errors.Is(err, want) ||
				want == nil && string(a.Body) != "ok" {
				t.Errorf("got %q, %v, want %v", a.Body, err, want)
			}
		})
	}
	t.Run("AS-163 a copy is asked about", func(t *testing.T) {
		a, err := c.Get(t.Context(), s.URL+"/etag", Validators{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(t.Context(), s.URL+"/etag", a.Validators()); !errors.Is(err, ErrNotModified) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-161 without the insecure option loopback is refused", func(t *testing.T) {
		if _, err := New(Options{}).Get(t.Context(), s.URL, Validators{}); !errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

// TestCheckAdmits: RU-20: Check accepts names and addresses of hosts that the operator permits.
func TestCheckAdmits(t *testing.T) {
	for host, networks := range map[string]string{
		"localhost": "::1/128", "localhost.": "127.0.0.0/8", "127.0.0.1": "127.0.0.0/8", "10.1.2.3": "10.0.0.0/8",
		"[::ffff:10.1.2.3]": "10.0.0.0/8", "[fd00::1]": "fd00::/8", "example.com": "10.0.0.0/8",
	} {
		c := New(Options{Networks: []netip.Prefix{netip.MustParsePrefix(networks)}})
		if err := c.Check(&url.URL{Scheme: "https", Host: host}); err != nil {
			t.Errorf("%s with %s: %v", host, networks, err)
		}
	}
}

// TestInternal checks which addresses an administrator may put a server at while the server runs.
func TestInternal(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:3000": true, "[::1]:3000": true, "10.1.2.3:80": true, "172.20.0.2:80": true, "192.168.1.1:80": true,
		"[fd12:3456::1]:80": true, "93.184.215.14:443": true, "[2606:4700::1]:443": true,
		"[::ffff:127.0.0.1]:80": false,
		"169.254.169.254:80":    false, "[fe80::1]:80": false, "[fd00:ec2::254]:80": false, "[fd20:ce::254]:80": false,
		"168.63.129.16:80": false, "[::ffff:169.254.169.254]:80": false, "[::ffff:168.63.129.16]:80": false,
		"0.0.0.0:80": false, "[::]:80": false, "100.100.100.200:80": false, "192.0.0.192:80": false,
		"224.0.0.1:80": false, "255.255.255.255:80": false, "[64:ff9b::a9fe:a9fe]:80": false, "metadata:80": false,
	} {
		a, err := netip.ParseAddrPort(address)
		network := "tcp4"
		if err == nil && a.Addr().Is6() {
			network = "tcp6"
		}
		if err := Internal(network, address, nil); (err == nil) != want || err != nil && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v, permitted should be %v", address, err, want)
		}
	}
}
