package admin_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestUpstreamOperations checks that an administrator can put an MCP server behind the gateway,
// change it, and take it from there.
func TestUpstreamOperations(t *testing.T) {
	s := installed(t)
	var log bytes.Buffer
	s.Audit = audit.New(slog.New(slog.NewJSONHandler(&log, nil)))
	by := s.Operator()
	const uri, upstream = "http://localhost:8414/notes", "http://127.0.0.1:3000/mcp"
	rules := []storage.ToolRule{{Name: "add_*", Scopes: []string{"write"}}, {Name: "drop", Deny: true}}
	made, err := admin.ResourceAdd.Do(t.Context(), by, admin.NewResource{
		URI: uri, Upstream: upstream, ToolRules: rules,
		Scopes: []storage.ScopeText{{Name: "read", EveryCall: true}, {Name: "write"}},
	})
	if err != nil || made.Upstream != upstream || len(made.Tools) != 2 ||
		!slices.Equal(made.Tools[0].Scopes, []string{"read", "write"}) || !made.Tools[1].Denied {
		t.Fatalf("added: %+v, %v", made, err)
	}
	if !strings.Contains(log.String(), `"what":"added","upstream_url":"`+upstream+`"`) {
		t.Errorf("the audit event has no upstream: %s", &log)
	}
	set := func(in admin.ResourceChange) (admin.Resource, error) {
		in.URI = uri
		return admin.ResourceSet.Do(t.Context(), by, in)
	}
	r, err := set(admin.ResourceChange{Name: "Notes"})
	if err != nil || r.Upstream != upstream || len(r.ToolRules) != 2 {
		t.Errorf("unchanged settings do not stay: %+v, %v", r, err)
	}
	_, err = set(admin.ResourceChange{Scopes: []storage.ScopeText{{Name: "read"}}})
	if !errors.Is(err, admin.ErrInvalid) || !strings.Contains(err.Error(), `"write" is not a scope`) {
		t.Errorf("a scope that a tool needs is removed: %v", err)
	}
	if r, err := set(admin.ResourceChange{ToolRules: []storage.ToolRule{}}); err != nil || len(r.ToolRules) != 0 {
		t.Errorf("without rules: %+v, %v", r, err)
	}
	if _, err := set(admin.ResourceChange{ToolRules: rules}); err != nil {
		t.Error(err)
	}
	r, err = set(admin.ResourceChange{Upstream: admin.NoUpstream})
	if err != nil || r.Upstream != "" || len(r.ToolRules)+len(r.Tools) != 0 {
		t.Errorf("taken from the gateway: %+v, %v", r, err)
	}
}

// TestUpstreamsThatCannotBe checks that a URL, a path or a tool rule that the gateway must not
// serve is refused, and that no message repeats a password (SP-28).
func TestUpstreamsThatCannotBe(t *testing.T) {
	s := installed(t)
	s.Config.Issuer = "https://auth.example.com/tenant"
	const root, upstream = "https://auth.example.com", "http://127.0.0.1:3000/mcp"
	var inputs []admin.NewResource
	var says []string
	bad := func(text string, all ...admin.NewResource) {
		for _, in := range all {
			inputs, says = append(inputs, in), append(says, text)
		}
	}
	at := func(upstream string) admin.NewResource {
		return admin.NewResource{URI: root + "/x", Upstream: upstream}
	}
	bad("must be a URL such as", at("npx -y server"), at("/usr/bin/server"), at("127.0.0.1:3000"),
		at("file:///etc/passwd"), at("unix:///run/x.sock"), at("ftp://127.0.0.1/"), at("http:///mcp"),
		at("http://a b/mcp"), at("http://%zz"),
		at("stdio:server"), at("http://h\r\nX: y/"), at("http:127.0.0.1"), at("http://[fe80::1%25eth0]/"))
	bad("no name, password, query", at("http://root:secret@127.0.0.1/"), at("http://127.0.0.1/?key=secret"),
		at("http://127.0.0.1/#secret"), at("http://127.0.0.1/?"), at("http://127.0.0.1/#"))
	bad("special", at("http://169.254.169.254/latest"), at("http://[fe80::1]/"), at("http://0.0.0.0/"),
		at("http://[fd00:ec2::254]/"), at("http://[::ffff:169.254.169.254]/"), at("http://168.63.129.16/"))
	bad("more than 2000 bytes", at("http://127.0.0.1/"+strings.Repeat("a", 2000)))
	place := func(uri string) admin.NewResource { return admin.NewResource{URI: uri, Upstream: upstream} }
	bad("must be at "+root, place("https://other.example.com/x"), place("http://auth.example.com/x"),
		place("https://auth.example.com:8443/x"))
	bad("plain path", place(root+"/x?y=z"), place(root+"/a/../token"), place(root+"/a//b"))
	bad("belongs to this server", place(root), place(root+"/tenant"), place(root+"/token"), place(root+"/%74oken"),
		place(root+"/tenant/authorize"), place(root+"/tenant/admin"), place(root+"/tenant/api/v1/x"),
		place(root+"/tenant/mcp/admin"), place(root+"/.well-known/x"),
		admin.NewResource{URI: root + "/x", Upstream: upstream, Aliases: []string{root + "/tenant/login"}})
	ruled := func(all ...storage.ToolRule) admin.NewResource {
		in := place(root + "/x")
		in.ToolRules = all
		return in
	}
	bad("listed twice", ruled(storage.ToolRule{Name: "a", Deny: true}, storage.ToolRule{Name: "a", Deny: true}))
	bad("is not a scope of this resource", ruled(storage.ToolRule{Name: "a", Scopes: []string{"other"}}))
	bad("allowed only at the end", ruled(storage.ToolRule{Name: "a*b", Deny: true}))
	bad("is missing", ruled(storage.ToolRule{Deny: true}))
	bad("set scopes, or deny", ruled(storage.ToolRule{Name: "a"}),
		ruled(storage.ToolRule{Name: "a", Deny: true, Direct: true}))
	bad("at most", ruled(make([]storage.ToolRule, 101)...),
		ruled(storage.ToolRule{Name: strings.Repeat("n", 201), Deny: true}))
	bad("need an upstream", admin.NewResource{URI: root + "/x", ToolRules: []storage.ToolRule{{Name: "a", Deny: true}}})
	for i, in := range inputs {
		_, err := admin.ResourceAdd.Do(t.Context(), s.Operator(), in)
		kind := errors.Is(err, admin.ErrInvalid) || errors.Is(err, admin.ErrConflict)
		if !kind || !strings.Contains(err.Error(), says[i]) {
			t.Errorf("%+v: got %v, want an error that says %q", in, err, says[i])
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("SP-28: a secret is repeated: %v", err)
		}
	}
	if all, err := s.Store.ListResources(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("stored: %v, %v", all, err)
	}
}

// TestUpstreamsAreBounded checks that the database holds a limited number of MCP servers behind the
// gateway.
func TestUpstreamsAreBounded(t *testing.T) {
	s := installed(t)
	add := func(i int) error {
		_, err := admin.ResourceAdd.Do(t.Context(), s.Operator(), admin.NewResource{
			URI: fmt.Sprintf("http://localhost:8414/x%d", i), Upstream: "http://127.0.0.1:3000/mcp",
		})
		return err
	}
	for i := range 100 {
		if err := add(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(100); !errors.Is(err, admin.ErrConflict) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("one more: %v", err)
	}
	_, err := admin.ResourceSet.Do(t.Context(), s.Operator(), admin.ResourceChange{
		URI: "http://localhost:8414/x7", Upstream: "http://127.0.0.1:4000/mcp",
	})
	if err != nil {
		t.Errorf("moving one of them: %v", err)
	}
}
