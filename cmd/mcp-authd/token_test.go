package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestInspectHelper checks that token inspect reports a revoked sub-agent whose grant is still
// valid (AS-243).
func TestInspectHelper(t *testing.T) {
	now := time.Now()
	s := installation.Store(t)
	_, err := s.GrantAssertion(t.Context(), storage.AssertionGrant{
		IssuedAt: now, SpentUntil: now.Add(time.Minute), Configured: true,
		Grant: storage.Grant{
			ID: "grt_1", ClientID: "workload:ci:build", Scopes: oauth.Scopes{"mcp"}, TrustID: "ci",
			Resource: "https://mcp.example.com/mcp", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []storage.Node{{ID: "nod_1"}, {ID: "nod_2", ParentID: "nod_1"}} {
		n.GrantID, n.Name, n.Scopes = "grt_1", "reader", oauth.Scopes{"mcp"}
		n.CreatedAt, n.ExpiresAt = now, now.Add(time.Minute)
		if _, err := s.AddNode(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	claims := oauth.AccessTokenClaims{
		TokenID:  "t1",
		GrantID:  "grt_1",
		NodeID:   "nod_2",
		ClientID: "workload:ci:build",
		Act: &oauth.Actor{
			Subject: "reader", NodeID: "nod_2",
			Act: &oauth.Actor{Subject: "planner", NodeID: "nod_1"},
		},
		Confirmation: &oauth.Confirmation{Thumbprint: "the-thumbprint"},
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.RawURLEncoding.EncodeToString
	token := encoded([]byte(`{"alg":"ES256","kid":"k","typ":"at+jwt"}`)) + "." + encoded(text) + ".c2ln"
	loaded, err := config.Load(config.Source{Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	service := &admin.Service{Store: s, Config: loaded, Now: time.Now}
	inspect := func() admin.TokenInspection {
		t.Helper()
		found, err := admin.TokenInspect.Do(t.Context(), service.Operator(), admin.TokenText{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	why := func() string {
		t.Helper()
		other := func(w string) bool { return !strings.Contains(w, "helper") }
		return strings.Join(slices.DeleteFunc(inspect().Why, other), "")
	}
	if got := why(); got != "" {
		t.Errorf("it stands: got %q", got)
	}
	if _, err := s.CutNode(t.Context(), "nod_1", "grt_1", now); err != nil {
		t.Fatal(err)
	}
	if got := why(); !strings.Contains(got, "the helper nod_2 or one above it was cut") {
		t.Errorf("cut: got %q", got)
	}

	var out strings.Builder
	if err := printInspection(std{out: &out}, inspect()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"acting        reader (nod_2)\n", "acting        planner (nod_1)\n", "bound to key  the-thumbprint\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
