package admin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestTools checks that an administrator sees how a tool has changed, and can accept exactly that
// or keep the old definition (RS-219).
func TestTools(t *testing.T) {
	s := installed(t)
	by, now := s.Operator(), time.Now()
	const uri = "https://mcp.example.com/mcp"
	if _, err := admin.ResourceAdd.Do(t.Context(), by, admin.NewResource{URI: uri}); err != nil {
		t.Fatal(err)
	}
	see := func(text string) string {
		t.Helper()
		digest := storage.Hash(sha256.Sum256([]byte(text)))
		_, err := s.Store.SeeTools(t.Context(), uri, map[string]storage.ToolDefinition{
			"a": {Digest: digest, Text: text, At: now},
		}, true)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(digest[:])
	}
	accept := func(digest string) (admin.WatchedTool, error) {
		return admin.ResourceAccept.Do(t.Context(), by, admin.ToolAcceptance{URI: uri, Name: "a", Digest: digest})
	}
	findings := func() string {
		t.Helper()
		f, err := s.ToolFindings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, one := range f {
			out = append(out, one.Level+" "+one.What)
		}
		return strings.Join(out, ";")
	}
	first := see(`{"description":"reads","name":"a"}`)
	if got := findings(); got != "" {
		t.Errorf("RS-219: the first definition is a finding: %s", got)
	}
	second := see(`{"description":"reads, and sends","name":"a"}`)
	if got := findings(); got != "warning tools of "+uri+" are described otherwise than it was accepted: a" {
		t.Errorf("RS-219: got %q", got)
	}
	d, err := admin.ResourceTool.Do(t.Context(), by, admin.ToolOf{URI: uri, Name: "a"})
	want := []string{
		"  {", `-   "description": "reads",`, `+   "description": "reads, and sends",`, `    "name": "a"`, "  }",
	}
	if err != nil || d.State != admin.ToolChanged || d.Held || d.Accepted != first || d.Offered != second ||
		!slices.Equal(d.Lines, want) {
		t.Errorf("RS-219: got %+v, %v", d, err)
	}
	third := see(`{"description":"evil","name":"a"}`)
	for digest, want := range map[string]error{second: admin.ErrConflict, "xyz": admin.ErrInvalid} {
		if _, err := accept(digest); !errors.Is(err, want) {
			t.Errorf("RS-219: accepting %s: got %v, want %v", digest, err, want)
		}
	}
	if got, err := accept(first); err != nil || got.State != admin.ToolAccepted || got.Accepted != first {
		t.Errorf("RS-219: keeping the accepted definition: got %+v, %v", got, err)
	}
	see(`{"description":"evil","name":"a"}`)
	if got, err := accept(third); err != nil || got.Accepted != third || !got.ByOperator || findings() != "" {
		t.Errorf("RS-219: got %+v, %v", got, err)
	}
	fourth := see(`{"description":"by Olga","name":"a"}`)
	for want, actor := range map[string]admin.Actor{
		"olga":   {UserID: "usr_1", Name: "olga", ClientID: "app", Role: admin.Administrator, Proved: now},
		"deploy": {ClientID: "deploy", Role: admin.Administrator, Program: true},
	} {
		by := s.As(actor)
		got, err := admin.ResourceAccept.Do(t.Context(), by, admin.ToolAcceptance{URI: uri, Name: "a", Digest: fourth})
		if err != nil || got.AcceptedBy != want {
			t.Errorf("RS-219: accepted by %q, %v, want %q", got.AcceptedBy, err, want)
		}
		fourth = see(`{"description":"by ` + want + `","name":"a"}`)
	}
	if got, err := accept(fourth); err != nil || got.AcceptedBy != "operator" {
		t.Errorf("RS-219: accepted by %q, %v, want operator", got.AcceptedBy, err)
	}
	third = fourth
	all, err := admin.ResourceTools.Do(t.Context(), by, admin.ResourceURL{URI: uri})
	if err != nil || len(all.Items) != 1 || all.Items[0].Accepted != third {
		t.Errorf("RS-219: got %+v, %v", all, err)
	}
	_, err = admin.ResourceTool.Do(t.Context(), by, admin.ToolOf{URI: uri, Name: "b"})
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("RS-219: got %v, want ErrNotFound", err)
	}
}
