package upstream

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// TestWhoseAccount: a browser is signed in here as one user, and at the provider as another. Two
// replicas on one store take turns (security of the providers, M1).
func TestWhoseAccount(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	up := fakeidp.Start(t)
	var replicas []http.Handler
	var turn atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[turn.Add(1)%2].ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	for range 2 {
		d, err := thirdparty.New(thirdparty.Config{
			Issuer: front.URL, Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
			Connectors: []thirdparty.Connector{
				{ID: "corp", Type: "oidc", Name: "Corp", ClientID: up.ClientID, ClientSecret: up.ClientSecret,
					Issuer: up.URL},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		s, err := authserver.Assemble(t.Context(), authserver.Config{
			Issuer: front.URL, Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, Delegation: d,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(replicas) == 0 {
			if _, err := s.Users().Create(t.Context(), "victim", "correct horse battery", false); err != nil {
				t.Fatal(err)
			}
		}
		mux := http.NewServeMux()
		s.Register(mux)
		replicas = append(replicas, mux)
	}
	victim, err := store.UserByName(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	identities := func() int {
		all, err := store.Identities(t.Context(), victim.ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	b := newJar(t, front.URL)
	b.submit(t, "/login", b.get(t, "/login"), `action="/login"`,
		url.Values{"username": {"victim"}, "password": {"correct horse battery"}})
	if home := b.get(t, "/"); !strings.Contains(home, "victim") {
		t.Fatalf("not signed in: %s", home)
	}
	connect := func() string {
		t.Helper()
		away := b.submit(t, "/depart", b.get(t, "/account"), `action="/depart"`, nil)
		at, err := url.Parse(away)
		if err != nil {
			t.Fatal(err)
		}
		q := at.Query()
		q.Set("person", fakeidp.Bob.Subject) // the user who is signed in there
		at.RawQuery = q.Encode()
		back, err := up.Visit(at.String())
		if err != nil {
			t.Fatal(err)
		}
		return b.get(t, back.RequestURI())
	}
	t.Run("PM1 the account is named, and nothing is tied", func(t *testing.T) {
		if page := connect(); !strings.Contains(page, "bob") || !strings.Contains(page, fakeidp.Bob.Subject) ||
			identities() != 0 {
			t.Errorf("%d identities; %s", identities(), page)
		}
	})
	t.Run("PM1 of 8 answers at once, half of them no, one counts", func(t *testing.T) {
		page := connect()
		var moved atomic.Int64
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				decision := []string{"approve", "deny"}[n%2]
				to := b.submit(t, "/claim", page, `action="/claim"`, url.Values{"decision": {decision}})
				if to == "/account" {
					moved.Add(1)
				}
			})
		}
		group.Wait()
		if moved.Load() != 1 || identities() > 1 {
			t.Errorf("%d answers counted, %d identities", moved.Load(), identities())
		}
	})
}

// jar is an HTTP client with cookies that does not follow redirects.
type jar struct {
	*http.Client
	at string
}

func newJar(t *testing.T, at string) *jar {
	t.Helper()
	cookies, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &jar{
		&http.Client{
			Jar:           cookies,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, at,
	}
}

func (j *jar) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := j.Get(j.at + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

var sealedStep = regexp.MustCompile(`name="step" value="([^"]+)"`)

// submit posts the form of a page that contains mark, and returns the redirect target.
func (j *jar) submit(t *testing.T, path, page, mark string, fields url.Values) string {
	t.Helper()
	i := strings.Index(page, mark)
	if i < 0 {
		t.Errorf("no form %s in %s", mark, page)
		return ""
	}
	form := url.Values{"step": {sealedStep.FindStringSubmatch(page[i:])[1]}}
	for name, values := range fields {
		form[name] = values
	}
	resp, err := j.PostForm(j.at+path, form)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}
