package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/storagetest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// TestBusyInTheMiddle checks that each operation responds with 503 and Retry-After, and never with
// 500, if the database becomes busy at any of its store calls (OB-10, A-L7). With a key, a change
// that may be partly done is not made again.
func TestBusyInTheMiddle(t *testing.T) {
	store := storagetest.NewFailing(installation.Store(t))
	r, d := newRigOn(t, store), newDocument(t)
	r.person("root", admin.Administrator, "admin:write", time.Minute)
	r.client(storage.Client{ID: "app", Name: "App", RedirectURIs: []string{"https://app.example.com/callback"},
		GrantTypes: []string{"authorization_code"}}, "")
	refused, partly := map[string]int{}, 0
	for _, v := range admin.All() {
		spec := v.Spec()
		for n := 0; n < 200; n++ {
			calls, leases, hit := 0, 0, ""
			store.Surround(func(verb string, do func() error) error {
				if verb == "Lease" {
					leases++
				}
				givenUp := verb == "Lease" && leases > 1 // otherwise the next request would wait for it
				if calls++; calls > n && !givenUp {
					hit = verb
					return fmt.Errorf("%w: of the test", storage.ErrBusy)
				}
				return do()
			})
			body := ""
			if spec.HasBody() {
				body = bodyFor(d, spec, n)
			}
			path := spec.Path
			for strings.Contains(path, "{") {
				before, rest, _ := strings.Cut(path, "{")
				field, after, _ := strings.Cut(rest, "}")
				path = before + map[string]string{"name": "bob", "user": "bob", "id": "app"}[field] + after
			}
			w := r.do("root", spec.Method, path, body)
			store.Surround(nil)
			if w.Code == http.StatusServiceUnavailable {
				refused[spec.Name]++
				r.is(w, 503, "unavailable")
				if w.Header().Get("Retry-After") == "" {
					t.Errorf("A-L7: %s, busy at %s: no Retry-After", spec.Name, hit)
				}
				if strings.Contains(w.Body.String(), "part of it") {
					partly++
				}
			}
			if w.Code == http.StatusInternalServerError {
				t.Errorf("A-L7: %s, busy at call %d (%s): %d %s", spec.Name, n, hit, w.Code, w.Body)
			}
			if hit == "" {
				break
			}
		}
	}
	for _, name := range []string{"user add", "client add", "resource add", "grant revoke-many"} {
		if refused[name] < 2 {
			t.Errorf("A-L7: %s was refused %d times", name, refused[name])
		}
	}
	if len(refused) < 60 || partly < 30 {
		t.Errorf("A-L7: %d operations were refused, %d times in the middle", len(refused), partly)
	}
}

// bodyFor returns a body with which an operation runs to its end.
func bodyFor(d *document, spec admin.Spec, n int) string {
	switch spec.Name {
	case "user add":
		return fmt.Sprintf(`{"name":"bob%d","password":"correct horse battery"}`, n)
	case "user invite":
		return fmt.Sprintf(`{"name":"newcomer%d"}`, n)
	case "client add":
		return fmt.Sprintf(`{"id":"c%d","redirect_uris":["https://a.example/cb"]}`, n)
	case "resource add":
		return fmt.Sprintf(`{"uri":"https://m%d.example/mcp"}`, n)
	}
	return d.body(spec)
}
