package authserver_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
)

func options(dir string) authserver.Options {
	return authserver.Options{
		Issuer: "https://a.example", DataDir: dir,
		Resources: []authserver.Resource{{URI: "https://a.example/mcp", Name: "Notes", Scopes: []authserver.Scope{
			{Name: "read", Description: "read your notes", Default: true},
			{Name: "write", Description: "change your notes", Implies: []string{"read"}, Dangerous: true},
		}}},
	}
}

// A program that embeds the server names a directory: the key and the database are made there, and
// are the same after a restart.
func TestNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	keys := func(o authserver.Options) string {
		t.Helper()
		as, err := authserver.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := as.Close(); err != nil {
				t.Error(err)
			}
		}()
		if got := as.KnownScopes(t.Context()).String(); got != "offline_access read write" {
			t.Errorf("got the scopes %s", got)
		}
		w := httptest.NewRecorder()
		as.Handler().ServeHTTP(w, httptest.NewRequest("GET", o.Issuer+"/jwks.json", nil))
		return w.Body.String()
	}
	first := keys(options(dir))
	if again := keys(options(dir)); again != first || !strings.Contains(first, `"kid"`) {
		t.Errorf("got the keys %s, and after a restart %s", first, again)
	}
	if f, err := os.Stat(filepath.Join(dir, "secret.key")); err != nil || f.Mode().Perm()&0o077 != 0 {
		t.Errorf("got %v, %v", f.Mode(), err)
	}
	t.Run("registration can be closed", func(t *testing.T) {
		o := options(t.TempDir())
		o.Registration = authserver.RegistrationPolicy{Closed: true, NoDocuments: true}
		as, err := authserver.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer as.Close()
		w := httptest.NewRecorder()
		as.Handler().ServeHTTP(w, httptest.NewRequest("GET", o.Issuer+"/.well-known/oauth-authorization-server", nil))
		got := w.Body.String()
		if !strings.Contains(got, `"issuer"`) || strings.Contains(got, "registration_endpoint") ||
			strings.Contains(got, `"client_id_metadata_document_supported":true`) {
			t.Errorf("got %s", got)
		}
	})
}

// A lost key is not replaced beside the database that needs it, wherever that is.
func TestNewWithoutItsKey(t *testing.T) {
	for _, database := range []string{"", filepath.Join(t.TempDir(), "elsewhere.db")} {
		o := options(t.TempDir())
		o.Database = database
		as, err := authserver.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := as.Close(); err != nil {
			t.Fatal(err)
		}
		key := filepath.Join(o.DataDir, "secret.key")
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		if _, err := authserver.New(t.Context(), o); err == nil {
			t.Errorf("database %q: a server without its key", database)
		}
		if _, err := os.Stat(key); err == nil {
			t.Errorf("database %q: another key was made", database)
		}
	}
}

// What New cannot guess is refused before anything is created.
func TestNewRefuses(t *testing.T) {
	const postgres = "postgres://127.0.0.1:1/none"
	for want, change := range map[string]func(*authserver.Options){
		"set DataDir or SecretKeys": func(o *authserver.Options) { o.DataDir = "" },
		"SecretKeys[0] has 5 bytes, and needs 32": func(o *authserver.Options) {
			o.SecretKeys = [][]byte{[]byte("short")}
		},
		"set SecretKeys, the same on every replica": func(o *authserver.Options) { o.Database = postgres },
		"set DataDir or Database": func(o *authserver.Options) {
			o.DataDir, o.SecretKeys = "", [][]byte{make([]byte, 32)}
		},
	} {
		o := options(filepath.Join(t.TempDir(), "data"))
		change(&o)
		as, err := authserver.New(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if as != nil {
			t.Errorf("%s: got a server", want)
		}
		if _, err := os.Stat(filepath.Join(o.DataDir, "secret.key")); err == nil && o.DataDir != "" {
			t.Errorf("%s: left a key behind", want)
		}
	}
}
