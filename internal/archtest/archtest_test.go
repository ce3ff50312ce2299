package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// rules lists all rules, each with a module that breaks it in as many ways as the rule
// distinguishes, because a rule must be able to fail.
var rules = []struct {
	name   string
	check  func(module) []string
	broken module
	wrong  int // findings in broken
}{
	{"imports follow the table of the design", importTable, module{packages: []pkg{
		{path: "oauth", ours: []string{"internal/storage"}},
		{path: "internal/storage", ours: []string{"oauth", "internal/storage/sqlite"}},
		{
			path: "internal/storage/sqlite",
			ours: []string{
				"internal/storage", "internal/storage/postgres", "internal/storage/migration", "internal/secrets",
			},
		},
		{path: "dcr", ours: []string{"oauth", "metadata"}},
		{path: "authserver", ours: []string{"cmd/mcp-authd", "internal/users", "metadata"}},
		{path: "authserver/internal/form", ours: []string{"oauth", "internal/storage"}},
		{path: "authserver/internal/clients", ours: []string{"authserver/internal/refusal", "authserver"}},
		{path: "authserver/internal/grant",
			ours: []string{"authserver/internal/form", "authserver/internal/shell", "internal/storage"}},
		{path: "authserver/internal/shell", ours: []string{"authserver/internal/grant", "authserver/internal/flow"}},
		{path: "mcpresource", ours: []string{"oauth", "mcpresource/gosdk"}},
		{path: "mcpresource/internal/message", ours: []string{"mcpresource"}},
		{path: "mcpresource/internal/issuer", ours: []string{"oauth", "mcpresource/internal/statuslist"}},
		{path: "mcpresource/gosdk", ours: []string{"mcpresource", "mcpresource/internal/message"}},
		{path: "internal/anything", ours: []string{"internal/secrets", "authserver"}},
		{path: "newcomer"},
		{path: "cmd/mcp-authd", ours: []string{"internal/storage/sqlite", "authserver"}},
	}}, 15},
	{"what stands behind the endpoints knows no HTTP", behindHTTP, module{files: []file{
		source("authserver/internal/grant/a.go", "package grant\nimport \"net/http\"\nvar r *http.Request"),
		source("authserver/internal/flow/a.go",
			"package flow\nimport h \"net/http/httptest\"\nvar r h.ResponseRecorder"),
		source("authserver/internal/grant/a_test.go", "package grant\nimport \"net/http\"\nvar r *http.Request"),
		source("authserver/internal/shell/a.go", "package shell\nimport \"net/http\"\nvar r *http.Request"),
	}}, 2},
	{"no function has a writer of answers and a store", edgeOrStore, module{files: []file{
		source("internal/storage/a.go", "package storage\ntype Users interface{}\ntype User struct{}"),
		source("authserver/a.go", `package authserver
			import "net/http"
			import "github.com/mcp-authd/mcp-authd/internal/storage"
			type Store interface{ storage.Users }
			type pages struct { people storage.Users; cfg struct { Store Store }; user storage.User }
			func (p *pages) a(w http.ResponseWriter) { p.people.Find(); p.user.Name() }
			func (p *pages) b(w http.ResponseWriter) { p.cfg.Store.Find() }
			func (p *pages) c() { http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.people.Find() }) }
			func d(w http.ResponseWriter, u storage.Users) {}
			func e(w http.ResponseWriter, s Store) {}
			func (p *pages) g() { p.people.Find() }
			func k(w http.ResponseWriter, ready *atomic.Bool) { ready.Store(true) }
			func (p *pages) h(w http.ResponseWriter, u storage.User) { p.g() }`),
		source("authserver/a_test.go", `package authserver
			import "net/http"
			func a(w http.ResponseWriter, s Store) {}`),
		source("cmd/a/a.go", "package main\nimport \"net/http\"\nfunc a(w http.ResponseWriter, s Store) {}"),
	}}, 5},
	{"only the assembly imports a storage backend", storageBackends, module{packages: []pkg{
		{path: "dcr", ours: []string{"internal/storage/sqlite"}},
		{path: "internal/anything", ours: []string{"internal/storage/postgres"}},
		{path: "examples/embed", ours: []string{"internal/storage/sqlite"}},
	}}, 2},
	{"only tests import the test kit", testkitInTests, module{packages: []pkg{
		{path: "cmd/mcp-authd", ours: []string{"internal/testkit/fakeidp"}},
		{path: "internal/anything", ours: []string{"internal/testkit/pgtest"}},
		{path: "internal/testkit/idptest", ours: []string{"internal/testkit/npmtest"}},
		{path: "bench", ours: []string{"internal/testkit/pgtest"}},
		{path: "mcpresource/gosdk", ours: []string{"mcpresource/mcptest"}},
		{path: "mcpresource/gosdk/gosdktest", ours: []string{"mcpresource/mcptest"}},
	}}, 3},
	{"authserver, dcr and thirdparty do not reach each other", threeServers, module{packages: []pkg{
		{path: "authserver", reaches: []string{modulePath + "/dcr", modulePath + "/thirdparty"}},
		{path: "dcr", reaches: []string{modulePath + "/authserver", modulePath + "/thirdparty"}},
		{path: "thirdparty", reaches: []string{modulePath + "/thirdparty"}},
	}}, 3},
	{"the public packages are those of the design", publicPackages, module{packages: []pkg{
		{path: "oauth"}, {path: "audit"}, {path: "audit/verify"}, {path: "internal/audit"}, {path: "cmd/mcp-authd"},
		{path: "mcpresource/internal/issuer"}, {path: "session"},
	}}, 2},
	{"only New of authserver assembles a server", embeddedAlone, module{files: []file{
		source("authserver/embed.go", `package authserver
			import "github.com/mcp-authd/mcp-authd/dcr"`),
		source("authserver/token.go", `package authserver
			import "github.com/mcp-authd/mcp-authd/dcr"
			import "github.com/mcp-authd/mcp-authd/internal/storage/sqlite"`),
	}}, 2},
	{"mcpresource stays light", lightResource, module{packages: []pkg{
		{path: "mcpresource",
			foreign: []string{
				"github.com/go-jose/go-jose/v4/jwt", "golang.org/x/sync/singleflight", "golang.org/x/text/language",
			},
			reaches: []string{
				modulePath + "/internal/storage", modulePath + "/internal/mcp", modulePath + "/internal/secrets",
				"github.com/modelcontextprotocol/go-sdk/mcp", "github.com/jackc/pgx/v5", "net/http",
			}},
		{path: "mcpresource/gosdk",
			reaches: []string{"github.com/modelcontextprotocol/go-sdk/mcp", "github.com/ory/fosite"}},
		{path: "mcpresource/internal/issuer",
			foreign: []string{"github.com/go-jose/go-jose/v4", "golang.org/x/oauth2"}},
	}}, 7},
	{"mcpclient stays light", lightClient, module{packages: []pkg{
		{path: "mcpclient",
			foreign: []string{"golang.org/x/oauth2", "github.com/go-jose/go-jose/v4", "github.com/spf13/cobra"},
			reaches: []string{
				modulePath + "/internal/discovery", modulePath + "/internal/secrets", modulePath + "/oauth",
				"github.com/modelcontextprotocol/go-sdk/mcp", "net/http",
			}},
	}}, 3},
	{"messages are read from bytes alone", bytesAlone, module{packages: []pkg{
		{path: "mcpresource/internal/message", reaches: []string{"encoding/json", "net/http"}},
		{path: "mcpresource/internal/issuer", reaches: []string{"net/http"}},
	}}, 1},
	{"the leaves that mcpresource may use reach the standard library alone", weightlessLeaves, module{packages: []pkg{
		{path: "internal/mcp",
			reaches: []string{modulePath + "/internal/network", "net/netip", "golang.org/x/text/language"}},
		{path: "internal/network", reaches: []string{modulePath + "/oauth"}},
	}}, 2},
	{"what speaks to providers rests on no store", apartFromSessions, module{packages: []pkg{
		{path: "thirdparty/internal/provider",
			reaches: []string{modulePath + "/internal/storage", modulePath + "/oauth", "net/http"}},
		{path: "thirdparty/internal/rules", reaches: []string{modulePath + "/authserver/internal/session"}},
		{path: "thirdparty", reaches: []string{modulePath + "/internal/storage"}},
	}}, 2},
	{"sessions ask providers through package provider alone", spokenThroughProvider, module{files: []file{
		source("thirdparty/a.go", `package thirdparty
			import "net/http"
			func a(w http.ResponseWriter, r *http.Request) {}
			func b(c *http.Client) { http.Get(""); http.Error(nil, "", http.StatusOK) }`),
		source("thirdparty/internal/provider/a.go", "package provider\nimport \"net/http\"\nvar c http.Client"),
	}}, 2},
	{"vocabulary, contracts and pages are standard library only", standardOnly, module{packages: []pkg{
		{path: "oauth", foreign: []string{"github.com/x/y"}},
		{path: "internal/storage/sqlite", foreign: []string{"modernc.org/sqlite"}},
	}}, 1},
	{"the verifier of the audit log has one library", verifierAlone, module{packages: []pkg{
		{path: "audit/verify", foreign: []string{"golang.org/x/mod/sumdb/tlog", "golang.org/x/crypto/ed25519"}},
		{path: "internal/audit", foreign: []string{"golang.org/x/crypto/ed25519"}},
	}}, 1},
	{"each library stays behind its package, go-jose v3 and cgo drivers nowhere", libraryOwners, module{packages: []pkg{
		{path: "dcr", foreign: []string{"github.com/ory/fosite/token/jwt"}},
		{path: "internal/keys", foreign: []string{"github.com/go-jose/go-jose/v3", "github.com/go-jose/go-jose/v4"}},
		{path: "authserver", foreign: []string{"github.com/ory/fosite"}},
		{path: "authserver/internal/grant",
			foreign: []string{"github.com/ory/fosite", "github.com/go-jose/go-jose/v4"}},
		{path: "authserver/internal/shell", foreign: []string{"github.com/ory/fosite"}},
	}}, 4},
	{"examples import nothing internal", openExamples, module{packages: []pkg{
		{path: "examples/embedded", ours: []string{"internal/users", "internal/storage/internal/column", "authserver"}},
		{path: "cmd/mcp-authd", ours: []string{"internal/users"}},
	}}, 2},
	{"no cgo", noCgo, module{packages: []pkg{{path: "internal/storage/sqlite", cgo: true}}}, 1},
	{"no package util, common, helpers, types or models", namedPackages, module{packages: []pkg{
		{path: "internal/util", name: "util"}, {path: "x", name: "helpers"}, {path: "oauth", name: "oauth"},
	}}, 2},
	{"no file over 400 lines", shortFiles, module{files: []file{
		source("a/long.go", "package a"+strings.Repeat("\n", 500)),
		source("a/long_test.go", "package a"+strings.Repeat("\n", 500)),
	}}, 1},
	{"no package over 40 files", smallPackages, module{files: slices.Concat(
		repeated(maxFiles+1, "a/a%d.go", "package a"),
		repeated(maxFiles+1, "b/b%d_test.go", "package b"),
		repeated(maxFiles, "c/c%d.go", "package c"),
		repeated(manyFiles["storage"], "internal/storage/s%d.go", "package storage"),
		repeated(manyFiles["authserver"]+1, "authserver/a%d.go", "package authserver"),
	)}, 2},
	{"no type over 60 methods", smallTypes, module{files: []file{
		source("a/a.go", "package a\n"+strings.Repeat("func (t) m() {}\n", maxMethods)),
		source("a/b.go", "package a\nfunc (*t) m() {}\nfunc (u[int]) m() {}\nfunc f() {}"),
		source("b/a.go", "package b\n"+strings.Repeat("func (*t) m() {}\n", maxMethods)),
		source("b/a_test.go", "package b\nfunc (*t) m() {}"),
		source("mcpresource/guard.go",
			"package mcpresource\n"+strings.Repeat("func (*Guard) m() {}\n", manyMethods["mcpresource.Guard"]+1)),
	}}, 2},
	{"comments and messages are plain", plainWords, module{files: []file{
		source("a/a.go", "package a\n"+strings.Repeat("// The key is that of the user.\n", 3)),
		source("b/a.go", "package b\n"+strings.Repeat("// The key belongs to the user.\n", 200)+
			strings.Repeat("// It has a key of its own.\n", 4)),
		source("c/a.go", "package c\nfunc f() {\n"+strings.Repeat("errors.New(\"a: it is no number\")\n", 2)+
			"errors.New(\"a: the key is none\")\nt.Errorf(\"the key is none: %v\", err)\n}"),
	}}, 2},
	{"clocks are injected", injectedClocks, module{files: []file{
		source("internal/gateway/a.go", `package gateway
			import "time"
			var now = time.Now
			func a() bool { return time.Now().IsZero() || time.Since(time.Time{}) > time.Until(time.Time{}) }`),
		source("dcr/a.go", "package dcr\nimport clock \"time\"\nvar a = clock.Now()"),
		source("dcr/a_test.go", "package dcr\nimport \"time\"\nvar a = time.Now()"),
		source("cmd/mcp-authd/a.go", "package main\nimport \"time\"\nvar a = time.Now()"),
		source("mcpresource/deadline.go", "package mcpresource\nimport \"time\"\nvar a = time.Now()"),
	}}, 4},
	{"tests wait for events, not for time", eventsNotTime, module{files: []file{
		source("a/a_test.go", `package a
			import clock "time"
			func a() {
				clock.Sleep(1)
				<-clock.After(1)
				_ = <-clock.Tick(1)
				select { case <-clock.After(1): }
				select { case <-clock.After(1): case <-event: }
				select { case <-clock.After(1): default: }
				other.Sleep(1)
			}`),
		source("a/a.go", "package a\nimport \"time\"\nfunc a() { time.Sleep(1) }"),
		source("internal/testkit/a/a.go", "package a\nimport \"time\"\nfunc a() { time.Sleep(1) }"),
		source("internal/testkit/wait/wait.go", "package wait"),
	}}, 3},
	{"JSON is read strictly in one package", oneStrictReader, module{files: []file{
		source("dcr/a.go", `package dcr
			import "encoding/json"
			func a(d *json.Decoder) { d.Token(); d.More(); d.DisallowUnknownFields() }`),
		source("dcr/b.go", "package dcr\nimport j \"encoding/json\"\nvar a, err = j.NewDecoder(nil).Token()"),
		source("dcr/c.go", "package dcr\nimport \"encoding/json\"\nvar a = json.NewDecoder(nil).Decode(nil)"),
		source("dcr/d.go", "package dcr\nimport \"encoding/json\"\nvar a, b = json.Valid, source.Token()"),
		source("dcr/e_test.go", "package dcr\nimport \"encoding/json\"\nvar a, err = json.NewDecoder(nil).Token()"),
		source("internal/strictjson/a.go",
			"package strictjson\nimport \"encoding/json\"\nvar a, err = json.NewDecoder(nil).Token()"),
	}}, 4},
	{"key sets of others are read and cached in one package", oneKeySet, module{files: []file{
		source("dcr/a.go", `package dcr
			import j "github.com/go-jose/go-jose/v4"
			var a j.JSONWebKeySet
			type b struct { keys []j.JSONWebKey; one j.JSONWebKey }
			type c struct { keys map[string]j.JSONWebKey }
			func d() []j.JSONWebKey { return nil }`),
		source("dcr/b.go", "package dcr\ntype a struct { B []json.RawMessage `json:\"keys\"`; C []int `json:\"keys\"` }"),
		source("dcr/c.go", "package dcr\nimport \"other/jose\"\nvar a jose.JSONWebKeySet"),
		source("dcr/d_test.go", "package dcr\nimport \"github.com/go-jose/go-jose/v4\"\nvar a jose.JSONWebKeySet"),
		source("internal/keys/a.go", "package keys\nimport \"github.com/go-jose/go-jose/v4\"\nvar a jose.JSONWebKeySet"),
	}}, 4},
	{"what is known about a request is in one record", oneRecord, module{files: []file{
		source("authserver/a.go", "package authserver\nimport \"context\"\nvar a = context.WithValue(nil, 1, 2)"),
		source("authserver/a_test.go", "package authserver\nimport \"context\"\nvar a = context.WithValue(nil, 1, 2)"),
		source("internal/request/record.go", "package request\nimport \"context\"\nvar a = context.WithValue(nil, 1, 2)"),
		source("internal/gateway/a.go", "package gateway\nimport \"context\"\nvar a = context.WithValue(nil, 1, 2)"),
	}}, 1},
	{"no func init", noInit, module{files: []file{
		source("a/a.go", "package a\nfunc init() {}"),
		source("a/b.go", "package a\ntype t struct{}\nfunc (t) init() {}"),
	}}, 1},
	{"durations are logged in milliseconds", unitOfDurations, module{files: []file{
		source("a/a.go", "package a\nimport \"log/slog\"\nvar a = slog.Duration(\"took\", 1)"),
		source("a/b.go", "package a\nvar b = other.Duration(1)"),
	}}, 1},
	{"a count has the form of its noun that goes with it", countedNouns, module{files: []file{
		source("cmd/a/a.go", "package a\nconst a = \"%d signing keys are published\""),
		source("cmd/a/b.go", "package a\nconst b = \"%d people\""),
		source("cmd/a/c.go", "package a\nconst c = \"at most %d keys, and entry %d is missing\""),
		source("cmd/a/d_test.go", "package a\nconst d = \"got %d keys\""),
	}}, 2},
	{"no program imports net/http/httptest", noTestServer, module{files: []file{
		source("internal/assembly/a.go", "package assembly\nimport \"net/http/httptest\""),
		source("internal/assembly/a_test.go", "package assembly\nimport \"net/http/httptest\""),
		source("internal/testkit/fakeidp/a.go", "package fakeidp\nimport \"net/http/httptest\""),
	}}, 1},
	{"no replace in go.mod", noReplace,
		module{gomod: "module x // replace\nreplace a => ../a\nreplace (\n b => c\n)\n"}, 2},
	{"no fosite type in an exported signature of authserver", hiddenFosite, module{files: []file{
		source("authserver/a.go", `package authserver
			import "github.com/ory/fosite"
			import h "github.com/ory/fosite/handler/oauth2"
			func A(fosite.Client) {}
			func a(fosite.Client) {}
			type B struct { C []fosite.Client; d fosite.Client; h.CoreStrategy }
			type e struct { F fosite.Client }
			func (e) G() fosite.Client { return nil }
			func (*B) H() map[string]fosite.Client { return nil }
			var I = fosite.ErrInvalidClient
			type J interface { K(fosite.Client) }
			type L = fosite.Client`),
		source("dcr/a.go", "package dcr\nimport \"github.com/ory/fosite\"\nvar A fosite.Client"),
	}}, 7},
	{"no exported signature of a public package names an internal type", hiddenInternal, module{files: []file{
		source("mcpserver/a.go", `package mcpserver
			import "github.com/mcp-authd/mcp-authd/internal/users"
			import g "github.com/mcp-authd/mcp-authd/authserver/internal/grant"
			import "github.com/mcp-authd/mcp-authd/oauth"
			func A() *users.Users { return nil }
			func B(oauth.Scopes) { users.New() }
			type C struct { D g.Reply; e users.Users }
			type Users = users.Users
			type H = users.Users
			var ErrExists = users.ErrExists
			var ErrF error = users.ErrExists
			var G = users.New()`),
		source("internal/a/a.go",
			"package a\nimport \"github.com/mcp-authd/mcp-authd/internal/users\"\nvar A users.Users"),
		source("cmd/mcp-authd/a.go",
			"package main\nimport \"github.com/mcp-authd/mcp-authd/internal/users\"\nvar A users.Users"),
	}}, 4},
}

// repeated returns n files with the same text.
func repeated(n int, path, text string) (out []file) {
	for i := range n {
		out = append(out, source(fmt.Sprintf(path, i), text))
	}
	return out
}

func source(path, text string) file {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		panic(err) // a mistake in the table above
	}
	return file{path: path, lines: fset.File(syntax.FileStart).LineCount(), syntax: syntax}
}

func TestArchitecture(t *testing.T) {
	m := load(t)
	if len(m.packages) < 5 || len(m.files) < 20 {
		t.Fatalf("read %d packages and %d files, the rules would hold for lack of either", len(m.packages),
			len(m.files))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, finding := range r.check(m) {
				t.Error(finding)
			}
		})
	}
}

func TestRulesCanFail(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if got := r.check(r.broken); len(got) != r.wrong {
				t.Errorf("got %d findings, want %d:\n%s", len(got), r.wrong, strings.Join(got, "\n"))
			}
		})
	}
}
