package admin_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/assembly"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

var update = flag.Bool("update", false, "write the table of docs/roles.md")

// installed returns the service of an installation without a configuration file.
func installed(t *testing.T) *admin.Service {
	t.Helper()
	loaded, err := config.Load(config.Source{Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	store := installation.Store(t)
	parts := assembly.Parts{
		Config: loaded, Store: store, Keys: [][]byte{make([]byte, 32)}, Log: slog.New(slog.DiscardHandler),
		Audit: audit.New(slog.New(slog.DiscardHandler)),
	}
	notifier, err := parts.Notifier()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parts.Admin(notifier)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRoles checks that each role may use exactly the operations that name it, and that the table
// in the manual agrees (OB-10).
func TestRoles(t *testing.T) {
	s := installed(t)
	roles := []admin.Role{admin.Administrator, admin.Auditor, admin.Support, ""}
	table := "| operation | what it does | auditor | support | fresh proof |\n|---|---|---|---|---|\n"
	for _, v := range admin.All() {
		spec := v.Spec()
		for _, r := range roles {
			in, out := reflect.New(v.Input()).Interface(), reflect.New(v.Output()).Interface()
			actor := s.As(admin.Actor{Role: r, Program: true})
			// an empty input may fail in other ways
			if err := actor.Call(t.Context(), v, in, out); errors.Is(err, admin.ErrForbidden) == spec.Permits(r) {
				t.Errorf("OB-10: %s as %q: %v", spec.Name, r, err)
			}
		}
		if !spec.Permits(admin.Administrator) || !spec.Changes() && !spec.Permits(admin.Auditor) {
			t.Errorf("OB-10: %s is for %v: administrators do everything, auditors read all", spec.Name, spec.Roles)
		}
		yes := func(b bool) string {
			if b {
				return "yes"
			}
			return ""
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", spec.Name, spec.Summary,
			yes(spec.Permits(admin.Auditor)), yes(spec.Permits(admin.Support)), yes(spec.Fresh))
	}
	const page = "../../docs/roles.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), "| operation |")
	want := before + table
	if *update {
		err = os.WriteFile(page, []byte(want), 0o644)
	} else if !found || want != string(text) {
		t.Errorf("the table of %s is not that of the operations: go test ./internal/admin -run TestRoles -update", page)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSupportAndRoles checks that support cannot act on accounts with a role, because it could
// obtain the role that way (OB-10).
func TestSupportAndRoles(t *testing.T) {
	s := installed(t)
	for name, role := range map[string]admin.Role{"root": admin.Administrator, "bob": ""} {
		account := users.Account{Name: name, Password: "correct horse battery", Role: role}
		if _, err := s.Users.Add(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	support := s.As(admin.Actor{Role: admin.Support, Program: true})
	acts := map[string]func(admin.Caller, string) error{
		"disable": func(c admin.Caller, name string) error {
			_, err := admin.UserDisable.Do(t.Context(), c, admin.UserName{Name: name})
			return err
		},
		"enable": func(c admin.Caller, name string) error {
			_, err := admin.UserEnable.Do(t.Context(), c, admin.UserName{Name: name})
			return err
		},
		"passwd": func(c admin.Caller, name string) error {
			in := admin.NewPassword{Name: name, Password: "another horse battery"}
			_, err := admin.UserPasswd.Do(t.Context(), c, in)
			return err
		},
		"set-mail": func(c admin.Caller, name string) error {
			_, err := admin.UserSetMail.Do(t.Context(), c, admin.NewMail{Name: name, Mail: "me@example.com"})
			return err
		},
		"recover": func(c admin.Caller, name string) error {
			_, err := admin.UserRecover.Do(t.Context(), c, admin.Recovery{Name: name})
			return err
		},
		"links withdraw": func(c admin.Caller, name string) error {
			_, err := admin.UserLinksWithdraw.Do(t.Context(), c, admin.UserName{Name: name})
			return err
		},
		"ways remove": func(c admin.Caller, name string) error {
			_, err := admin.UserWaysRemove.Do(t.Context(), c, admin.UserWay{Name: name, Way: "way_none"})
			return err
		},
		"sessions end": func(c admin.Caller, name string) error {
			_, err := admin.UserSessionsEnd.Do(t.Context(), c, admin.UserSession{Name: name, Session: "ses_none"})
			return err
		},
		"delete": func(c admin.Caller, name string) error {
			_, err := admin.UserDelete.Do(t.Context(), c, admin.UserName{Name: name})
			return err
		},
	}
	for what, act := range acts {
		if err := act(support, "root"); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("OB-10: support: %s of an administrator: %v, want ErrForbidden", what, err)
		}
	}
	if _, err := admin.GroupAdd.Do(t.Context(), s.Operator(), admin.GroupMembers{Group: "editors"}); err != nil {
		t.Fatal(err)
	}
	invited := admin.Invitation{Name: "gina", Groups: []string{"editors"}}
	if _, err := admin.UserInvite.Do(t.Context(), s.Operator(), invited); err != nil {
		t.Fatal(err)
	}
	for _, made := range []func() error{
		func() error {
			_, err := admin.UserAdd.Do(t.Context(), support,
				admin.NewUser{Name: "eve", Password: "correct horse battery", Role: "auditor"})
			return err
		},
		func() error {
			_, err := admin.UserInvite.Do(t.Context(), support, admin.Invitation{Name: "eve", Role: "administrator"})
			return err
		},
		func() error { // RU-19
			in := admin.Invitation{Name: "eve", Groups: []string{"editors"}}
			_, err := admin.UserInvite.Do(t.Context(), support, in)
			return err
		},
		func() error { // replaces an invitation with groups
			_, err := admin.UserInvite.Do(t.Context(), support, admin.Invitation{Name: "gina"})
			return err
		},
	} {
		if err := made(); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("OB-10: support gives a role or a group: %v, want ErrForbidden", err)
		}
	}
	for _, what := range []string{"passwd", "set-mail", "recover", "links withdraw", "disable", "delete"} {
		if err := acts[what](support, "bob"); err != nil {
			t.Errorf("OB-10: support: %s of a person: %v", what, err)
		}
	}
	if u, err := s.Users.Find(t.Context(), "root"); err != nil || u.Disabled || u.Mail != "" {
		t.Errorf("the administrator is %+v, %v", u, err)
	}
}

// TestLinksOfWhoGetsARole checks that giving an account a role revokes its earlier links, whose
// creator could use them to obtain the role (OB-10).
func TestLinksOfWhoGetsARole(t *testing.T) {
	s := installed(t)
	account := users.Account{Name: "bob", Password: "correct horse battery"}
	if _, err := s.Users.Add(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	support := s.As(admin.Actor{Role: admin.Support, Program: true})
	link, err := admin.UserRecover.Do(t.Context(), support, admin.Recovery{Name: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	role := admin.UserRole{Name: "bob", Role: "administrator"}
	if _, err := admin.UserSetRole.Do(t.Context(), s.Operator(), role); err != nil {
		t.Fatal(err)
	}
	token := link.URL[strings.LastIndex(link.URL, "/")+1:]
	if _, err := s.Users.ShowLink(t.Context(), token, storage.Hash{}); !errors.Is(err, users.ErrLink) {
		t.Errorf("OB-10: the link of support: %v, want ErrLink", err)
	}
}

// TestClientPages checks that a list of clients from two sources contains each once, for any page
// size.
func TestClientPages(t *testing.T) {
	s := installed(t)
	configured := []storage.Client{
		{ID: "one:a", Source: storage.SourceConfig}, {ID: "two", Source: storage.SourceConfig},
	}
	s.Clients = func() ([]storage.Client, error) { return configured, nil }
	for i := range 5 {
		in := admin.NewClient{ID: fmt.Sprintf("stored.%d", i), RedirectURIs: []string{"https://a.example/cb"}}
		if _, err := admin.ClientAdd.Do(t.Context(), s.Operator(), in); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit <= 8; limit++ {
		var ids []string
		_, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.Client], error) {
			p.Limit = limit
			got, err := admin.ClientList.Do(t.Context(), s.Operator(), admin.Searched{Paging: p})
			if len(got.Items) > limit {
				t.Errorf("a page of %d has %d", limit, len(got.Items))
			}
			for _, c := range got.Items {
				ids = append(ids, c.ID)
			}
			return got, err
		})
		if got := strings.Join(ids, " "); err != nil || got != "one:a two stored.0 stored.1 stored.2 stored.3 stored.4" {
			t.Errorf("pages of %d: %s, %v", limit, got, err)
		}
	}
	for _, after := range []string{"x", "configured:9", "configured:-1", "configured:", ":"} {
		_, err := admin.ClientList.Do(t.Context(), s.Operator(), admin.Searched{Paging: admin.Paging{After: after}})
		if !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("after %q: %v, want ErrInvalid", after, err)
		}
	}
}
