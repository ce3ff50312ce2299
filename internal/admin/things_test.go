package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// touching returns the operations with which support changes a named object.
func touching() (out []admin.Verb) {
	for _, v := range admin.All() {
		s := v.Spec()
		if _, named := v.Input().FieldByName("Name"); named && s.Changes() && s.Permits(admin.Support) {
			out = append(out, v)
		}
	}
	return out
}

// filled returns an input for a named object.
func filled(t *testing.T, v admin.Verb, name string) reflect.Value {
	t.Helper()
	in := reflect.New(v.Input())
	for field, text := range map[string]string{
		"Name": name, "Password": "another horse battery", "Way": "way_x", "Session": "ses_x", "Mail": "a@example.com",
	} {
		if f := in.Elem().FieldByName(field); f.IsValid() {
			f.SetString(text)
		}
	}
	return in
}

// TestRoleAgainstEachThing checks that support may use no operation on an account with a role, or
// on an open invitation to one (EN-06). This holds for its ID and while it is disabled. Support may
// not accept or decline a proposal about it either, and the proposal stays open.
func TestRoleAgainstEachThing(t *testing.T) {
	const invited = "newadmin"
	verbs := touching()
	if len(verbs) < 10 {
		t.Fatalf("%d operations", len(verbs))
	}
	for _, disabled := range []bool{false, true} {
		s, actor := two(t)
		ctx := t.Context()
		sue, root, anna := s.As(actor("sue")), s.As(actor("root")), s.As(actor("anna"))
		invite := admin.Invitation{Name: invited, Role: "administrator"}
		if _, err := admin.UserInvite.Do(ctx, root, invite); err != nil {
			t.Fatal(err)
		}
		target, err := s.Users.Find(ctx, "audit")
		if err != nil {
			t.Fatal(err)
		}
		if disabled {
			if err := s.Users.Disable(ctx, target.ID); err != nil {
				t.Fatal(err)
			}
		}
		state := func() string {
			u, err := admin.UserShow.Do(ctx, root, admin.UserName{Name: target.ID})
			links, failed := admin.UserLinks.Do(ctx, root, admin.OpenLinks{})
			raw, broken := json.Marshal([]any{u, links})
			if err := errors.Join(err, failed, broken); err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		before := state()
		things := []string{"audit", "AUDIT", target.ID, invited, strings.ToUpper(invited)}
		for _, v := range verbs {
			name := v.Spec().Name
			for _, thing := range things {
				what := fmt.Sprintf("EN-06: %s of %s (disabled %v)", name, thing, disabled)
				call := func(c admin.Caller) error {
					return c.Call(ctx, v, filled(t, v, thing).Interface(), reflect.New(v.Output()).Interface())
				}
				if err := call(sue); !errors.Is(err, admin.ErrForbidden) {
					t.Errorf("%s by support: %v, want ErrForbidden", what, err)
				}
				s.Two = []string{name}
				if err := call(sue); !errors.Is(err, admin.ErrForbidden) {
					t.Errorf("%s proposed by support: %v, want ErrForbidden", what, err)
				}
				err := call(root)
				s.Two = nil
				p := (*admin.ProposedError)(nil)
				if !errors.As(err, &p) {
					if !errors.Is(err, admin.ErrNotFound) { // for operations on accounts only
						t.Errorf("%s proposed by an administrator: %v", what, err)
					}
					continue
				}
				id := admin.ProposalID{ID: p.Proposal.ID}
				if _, err := admin.ProposalAccept.Do(ctx, sue, id); !errors.Is(err, admin.ErrForbidden) {
					t.Errorf("%s accepted by support: %v, want ErrForbidden", what, err)
				}
				if _, err := admin.ProposalDecline.Do(ctx, sue, id); !errors.Is(err, admin.ErrForbidden) {
					t.Errorf("%s declined by support: %v, want ErrForbidden", what, err)
				}
				if got, err := admin.ProposalDecline.Do(ctx, anna, id); err != nil || got.State != "declined" {
					t.Errorf("%s: the proposal was used up: %+v, %v", what, got, err)
				}
			}
		}
		if after := state(); after != before {
			t.Errorf("EN-06: support changed something:\n%s\n%s", before, after)
		}
	}
}

// TestRoleThatIsGiven checks the same for proposals that assign a role (EN-06).
func TestRoleThatIsGiven(t *testing.T) {
	s, actor := two(t, "user add", "user invite")
	ctx, sue, root := t.Context(), s.As(actor("sue")), s.As(actor("root"))
	eve := admin.NewUser{Name: "eve", Password: "correct horse battery", Role: "support"}
	_, added := admin.UserAdd.Do(ctx, root, eve)
	_, invited := admin.UserInvite.Do(ctx, root, admin.Invitation{Name: "eva", Role: "auditor"})
	for _, err := range []error{added, invited} {
		id := admin.ProposalID{ID: proposed(t, err).ID}
		if _, err := admin.ProposalAccept.Do(ctx, sue, id); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("EN-06: accepted by support: %v, want ErrForbidden", err)
		}
		if _, err := admin.ProposalDecline.Do(ctx, sue, id); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("EN-06: declined by support: %v, want ErrForbidden", err)
		}
		if _, err := admin.ProposalAccept.Do(ctx, s.As(actor("anna")), id); err != nil {
			t.Errorf("EN-06: accepted by an administrator then: %v", err)
		}
	}
	// For users without a role, support may decide.
	_, err := admin.UserAdd.Do(ctx, root, admin.NewUser{Name: "ed", Password: "correct horse battery"})
	if _, err := accept(ctx, sue, proposed(t, err).ID); err != nil {
		t.Errorf("EN-06: accepted by support: %v", err)
	}
}

// TestNameOfADeletedAccount checks that an account cannot take the place of another one by using
// its ID as a name (EN-06, A-H1).
func TestNameOfADeletedAccount(t *testing.T) {
	s, actor := two(t)
	ctx, sue, root := t.Context(), s.As(actor("sue")), s.As(actor("root"))
	bob, err := s.Users.Find(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bob.ID, strings.ToUpper(bob.ID), "usr_", "mcp_x", "grt_x", "..", ".", "operator"} {
		_, err := admin.UserAdd.Do(ctx, sue, admin.NewUser{Name: name, Password: "correct horse battery"})
		if !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("EN-06: an account is named %q: %v, want ErrInvalid", name, err)
		}
	}
	liar := bob
	liar.ID, liar.Name = "usr_liar", bob.ID // an earlier version accepted such names
	if err := s.Store.CreateUser(ctx, liar); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UserDelete.Do(ctx, root, admin.UserName{Name: bob.ID}); err != nil {
		t.Fatal(err)
	}
	for _, v := range admin.All() {
		in := reflect.New(v.Input())
		for _, field := range []string{"Name", "User", "Person"} {
			if f := in.Elem().FieldByName(field); f.IsValid() && f.Kind() == reflect.String {
				f.SetString(bob.ID)
			}
		}
		if f := in.Elem().FieldByName("Role"); f.IsValid() {
			f.SetString("administrator")
		}
		if f := in.Elem().FieldByName("Password"); f.IsValid() {
			f.SetString("correct horse battery")
		}
		_ = root.Call(ctx, v, in.Interface(), reflect.New(v.Output()).Interface())
	}
	if got, err := s.Store.User(ctx, liar.ID); err != nil || !reflect.DeepEqual(got, liar) {
		t.Errorf("EN-06: by the id of a deleted account, %+v became %+v, %v", liar, got, err)
	}
	if _, err := admin.UserDelete.Do(ctx, root, admin.UserName{Name: liar.ID}); err != nil {
		t.Errorf("EN-06: it is still there by its own id: %v", err)
	}
}

// TestNameOfADeletedClient checks that a client cannot take the place of another one by using its
// ID as a name (EN-06).
func TestNameOfADeletedClient(t *testing.T) {
	s, actor := two(t)
	ctx, root := t.Context(), s.As(actor("root"))
	ids := []string{"mcp_gone", "key_gone", "https://app.example/client", "workload:ci", "gone"}
	for i, id := range ids {
		liar := storage.Client{
			ID: fmt.Sprint("mcp_liar", i), Name: id, AuthMethod: "none", Source: storage.SourceDynamic,
			RedirectURIs: []string{"https://a.example/cb"}, GrantTypes: []string{"authorization_code"},
			CreatedAt: s.Now(),
		}
		if err := s.Store.PutClient(ctx, liar); err != nil {
			t.Fatal(err)
		}
	}
	// This client was removed from the configuration.
	gone := storage.Client{ID: "gone", Source: storage.SourceConfig, AuthMethod: "none", CreatedAt: s.Now()}
	if err := s.Store.PutClient(ctx, gone); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, err := admin.ClientDelete.Do(ctx, root, admin.ClientID{ID: id})
		if id != ids[2] && !errors.Is(err, admin.ErrNotFound) { // an unread document is a client
			t.Errorf("EN-06: client delete %s: %v, want ErrNotFound", id, err)
		}
		if c, err := s.FindClient(ctx, id); err == nil {
			t.Errorf("EN-06: %s finds %+v", id, c)
		}
	}
	for i := range ids {
		if _, err := s.Store.Client(ctx, fmt.Sprint("mcp_liar", i)); err != nil {
			t.Errorf("EN-06: the client that is named %q: %v", ids[i], err)
		}
	}
	for _, in := range []admin.NewClient{
		{ID: "usr_x"}, {ID: "grt_x"}, {ID: "USR_x"}, {ID: ".."}, {ID: "operator"}, {Name: "mcp_x"},
		{Name: "https://app.example/client"},
	} {
		in.GrantTypes = []string{"client_credentials"}
		if _, err := admin.ClientAdd.Do(ctx, root, in); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("EN-06: %+v is added: %v, want ErrInvalid", in, err)
		}
	}
}

// TestReservedNames checks that accounts with such a name from an earlier version are reported
// (EN-06).
func TestReservedNames(t *testing.T) {
	s, _ := two(t)
	if f, err := s.NameFindings(t.Context()); err != nil || len(f) != 1 || f[0].Level != admin.LevelOK {
		t.Errorf("EN-06: none: %+v, %v", f, err)
	}
	reserved := []string{"usr_x", "Grt_", "..", "Operator"}
	for i, name := range append(reserved, "usr", "usra", "grt-x", "zoe") {
		u := storage.User{ID: fmt.Sprint("usr_", i), Name: name, CreatedAt: s.Now()}
		if err := s.Store.CreateUser(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.NameFindings(t.Context())
	text := fmt.Sprint(f)
	if err != nil || len(f) != len(reserved) {
		t.Errorf("EN-06: got %+v, %v", f, err)
	}
	for i, name := range reserved {
		if !strings.Contains(text, fmt.Sprintf("the account usr_%d has the name %q", i, name)) {
			t.Errorf("EN-06: %q is not found: %s", name, text)
		}
	}
}
