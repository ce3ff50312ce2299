package console

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestAuditOfReplicas checks that the table of replicas shows waiting and lost audit entries
// (OB-10).
func TestAuditOfReplicas(t *testing.T) {
	v := &view{Console: New(Config{Now: time.Now})}
	all := v.replicas([]admin.Replica{{Name: "a", AuditWaiting: 12}, {Name: "b", AuditLost: 3}, {Name: "c"}})
	at := slices.Index(all.Columns, "Audit entries")
	if at < 0 || !slices.Contains(all.Columns, "Name") {
		t.Fatalf("OB-10: got the columns %q", all.Columns)
	}
	a, b, c := all.Rows[0][at], all.Rows[1][at], all.Rows[2][at]
	if a.Text != "12 waiting" || b.Text != "" || len(b.Badges) != 1 || b.Badges[0].Text != "3 lost" || !c.Blank() {
		t.Errorf("OB-10: got %+v, %+v, %+v", a, b, c)
	}
}

// TestAuditNamesAndIDs checks that the audit log shows users and clients by name and ID, even if an
// entry has only the ID (OB-10).
func TestAuditNamesAndIDs(t *testing.T) {
	v := &view{Console: New(Config{Visitors: atRoot{}, Now: time.Now}), role: admin.Administrator}
	bob := storage.User{ID: "usr_00000000000000000000bob", Name: "bob"}
	view := auditformat.View{
		Person: bob.ID, ClientID: "mcp_1", Fields: map[string]string{"user": bob.ID, "client_id": "mcp_1"},
	}
	e := admin.AuditEntry{View: view, UserName: bob.Name, ClientName: "Notes"}
	item := members(valueOf([]admin.AuditEntry{e}).Index(0))
	for field, want := range map[string]pages.ConsoleCell{
		"person": {
			Text: "bob", Note: shortened(bob.ID), URL: "/admin/user/show?name=" + bob.ID, // names can be reused
		},
		"client_id": {Text: "Notes", Said: true, Note: "mcp_1", URL: "/admin/client/show?id=mcp_1"},
	} {
		m, _ := memberOf(item, field)
		if got := v.cell(audits, item, m); !reflect.DeepEqual(got, want) {
			t.Errorf("OB-10: %s: got %+v, want %+v", field, got, want)
		}
	}
	for i, want := range []string{"“Notes”", "“bob”"} {
		if got := v.said(e)[i].Value.Note; got != want {
			t.Errorf("OB-10: the entry names %s, want %s", got, want)
		}
	}
	e.Fields["user_name"] = "robert" // the name at the time of the event
	if got := v.said(e)[1].Value.Note; got != "" {
		t.Errorf("OB-10: an entry with a name is given another: %s", got)
	}
}

// atRoot is a Visitors whose pages are below the root.
type atRoot struct{ Visitors }

func (atRoot) Path(page string) string { return page }

// TestWhoseProposal checks that a proposal shows the account ID of its proposer, because another
// account may have the name now (OB-10).
func TestWhoseProposal(t *testing.T) {
	v := &view{
		Console: New(Config{Visitors: atRoot{}, Now: time.Now}), role: admin.Administrator,
		visit: storage.Visit{User: storage.User{ID: "usr_2", Name: "alice"}},
	}
	before := admin.Proposal{
		Operation: "user disable", State: "open", About: "bob (usr_3)", Input: []byte(`{"name":"usr_3","why":"x"}`),
		By: admin.Party{User: "alice", UserID: "usr_1", Client: "cli", ClientName: "The <command> line"},
	}
	own := before
	own.By = admin.Party{User: "formerly", UserID: "usr_2"}
	program := before
	program.By = admin.Party{Client: "robot"}
	for name, want := range map[string]struct {
		p    admin.Proposal
		cell string
	}{
		"another alice": {before, "alice|usr_1 by “The <command> line”|/admin/user/show?name=usr_1"},
		"me":            {own, "formerly|usr_2|/admin/user/show?name=usr_2"},
		"a program":     {program, "robot||/admin/client/show?id=robot"},
	} {
		item := members(valueOf([]admin.Proposal{want.p}).Index(0))
		by, _ := memberOf(item, "by")
		c := v.cell(proposals, item, by)
		if got := c.Text + "|" + c.Note + "|" + c.URL; got != want.cell {
			t.Errorf("OB-10: %s: got %q, want %q", name, got, want.cell)
		}
		about, _ := memberOf(item, "about")
		if c := v.cell(proposals, item, about); c.URL != "/admin/user/show?name=usr_3" || c.Text != "bob (usr_3)" {
			t.Errorf("OB-10: it is about %+v", c)
		}
		input, _ := memberOf(item, "input")
		if c := v.cell(proposals, item, input); len(c.List) != 1 || c.List[0] != "why: x" {
			t.Errorf("OB-10: the rest of its input is %q", c.List)
		}
	}
}
