package safehttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	c := New(Options{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
		"0.0.0.0", "[::]", "100.64.0.1", "[fe80::1]", "[fd00::1]", "224.0.0.1", "[64:ff9b::7f00:1]", "192.0.0.8", "198.18.0.1",
	} {
		t.Run("AS-161 SP-09 refused: "+host, func(t *testing.T) {
			if _, _, err := c.Get(t.Context(), "https://"+host+":9/x"); !Refused(err) {
				t.Errorf("got %v, want a refusal before connecting", err)
			}
		})
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
		default:
			w.Write([]byte("ok"))
		}
	}))
	defer s.Close()
	c := New(Options{InsecureLoopback: true, MaxBytes: 1000})
	for path, want := range map[string]error{"/ok": nil, "/redirect": ErrStatus, "/large": ErrTooLarge, "/missing": ErrStatus} {
		t.Run("AS-160 AS-162 SP-10 "+path, func(t *testing.T) {
			if _, body, err := c.Get(t.Context(), s.URL+path); !errors.Is(err, want) || want == nil && string(body) != "ok" {
				t.Errorf("got %q, %v, want %v", body, err, want)
			}
		})
	}
	t.Run("AS-161 without the insecure option loopback is refused", func(t *testing.T) {
		if _, _, err := New(Options{}).Get(t.Context(), s.URL); !Refused(err) {
			t.Errorf("got %v", err)
		}
	})
}
