package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// two returns an installation where the named operations need two administrators, and a function
// that returns its users.
func two(t *testing.T, names ...string) (*admin.Service, func(name string) admin.Actor) {
	t.Helper()
	s := installed(t)
	s.Two = names
	if err := admin.CheckTwo(names); err != nil {
		t.Fatal(err)
	}
	roles := map[string]admin.Role{
		"root": admin.Administrator, "anna": admin.Administrator, "sue": admin.Support, "audit": admin.Auditor,
		"bob": "",
	}
	for name, role := range roles {
		account := users.Account{Name: name, Password: "correct horse battery", Role: role}
		if _, err := s.Users.Add(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	return s, func(name string) admin.Actor {
		u, err := s.Users.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return admin.Actor{UserID: u.ID, Name: name, ClientID: "cli", Role: roles[name], Proved: s.Now()}
	}
}

// proposed returns the proposal in an error.
func proposed(t *testing.T, err error) admin.Proposal {
	t.Helper()
	var p *admin.ProposedError
	if !errors.As(err, &p) || p.Proposal.State != "open" || !strings.Contains(err.Error(), "proposed: "+p.Proposal.ID) {
		t.Fatalf("OB-10: got %v, want a proposal", err)
	}
	return p.Proposal
}

func accept(ctx context.Context, c admin.Caller, id string) (admin.Accepted, error) {
	return admin.ProposalAccept.Do(ctx, c, admin.ProposalID{ID: id})
}

// TestTwoAdministrators checks that a listed operation waits for a second administrator who may run
// it and has authenticated recently (OB-10). It runs once, exactly as proposed.
func TestTwoAdministrators(t *testing.T) {
	s, actor := two(t, "user disable", "user passwd")
	ctx, bob := t.Context(), admin.UserName{Name: "bob"}
	disabled := func() bool {
		u, err := s.Users.Find(ctx, "bob")
		if err != nil {
			t.Fatal(err)
		}
		return u.Disabled
	}
	root, anna, sue := s.As(actor("root")), s.As(actor("anna")), s.As(actor("sue"))
	_, err := admin.UserDisable.Do(ctx, root, bob)
	p := proposed(t, err)
	account, err := s.Users.Find(ctx, "bob")
	if err != nil || p.About != "bob ("+account.ID+")" || p.By.UserID != actor("root").UserID {
		t.Errorf("OB-10: it is about %q, by %+v, %v", p.About, p.By, err)
	}
	_, err = admin.UserDisable.Do(ctx, s.As(actor("anna")), admin.UserName{Name: account.ID})
	if byID := proposed(t, err); byID.About != p.About {
		t.Errorf("OB-10: named by id, it is about %q", byID.About)
	}
	if disabled() || p.By.User != "root" || p.Operation != "user disable" || string(p.Input) != `{"name":"bob"}` {
		t.Errorf("OB-10: it is done already, or is %+v", p)
	}
	stale := actor("anna")
	stale.Proved = s.Now().Add(-time.Hour)
	browser, program := actor("root"), admin.Actor{ClientID: "robot", Role: admin.Administrator, Program: true}
	browser.ClientID = ""
	for what, c := range map[string]admin.Caller{
		"who proposed it": root, "the same person in a browser": s.As(browser), "a program": s.As(program),
		"an auditor": s.As(actor("audit")), "who has the database": s.Operator(),
	} {
		if _, err := accept(ctx, c, p.ID); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("OB-10: %s accepts: %v, want ErrForbidden", what, err)
		}
	}
	if _, err := accept(ctx, s.As(stale), p.ID); !errors.As(err, new(*admin.StaleError)) {
		t.Errorf("OB-10: an old proof: %v, want a StaleError", err)
	}
	if _, err := accept(ctx, anna, "prp_unknown"); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("OB-10: an unknown proposal: %v, want ErrNotFound", err)
	}
	if disabled() {
		t.Fatal("OB-10: a refusal carried it out")
	}
	done, err := accept(ctx, sue, p.ID)
	if err != nil || !disabled() || done.State != "accepted" || done.Decided.User != "sue" || done.Output == nil {
		t.Errorf("OB-10: accepted: %+v, %v", done, err)
	}
	if _, err := accept(ctx, anna, p.ID); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: a second time: %v, want ErrConflict", err)
	}
	_, err = admin.UserEnable.Do(ctx, root, bob)
	if err != nil || disabled() {
		t.Errorf("OB-10: an unlisted operation runs at once: %v", err)
	}
	if _, err := admin.UserDisable.Do(ctx, s.Operator(), bob); err != nil || !disabled() {
		t.Errorf("OB-10: who has the database: %v", err)
	}
	// A secret in a proposal is used but never shown.
	_, err = admin.UserPasswd.Do(ctx, root, admin.NewPassword{Name: "sue", Password: "planted secret words"})
	secret := proposed(t, err)
	kept, err := s.Store.Proposal(ctx, secret.ID, s.Now())
	shown, failed := json.Marshal(secret)
	if err != nil || failed != nil || strings.Contains(string(kept.Input)+string(shown), "planted") {
		t.Errorf("OB-10: the password is in %s or the store: %v, %v", shown, err, failed)
	}
	if _, err := accept(ctx, s.As(actor("sue")), secret.ID); !errors.Is(err, admin.ErrForbidden) {
		t.Errorf("OB-10: support accepts an operation that it may not run: %v", err)
	}
}

// TestSupportProposes checks that support can propose only operations that it may run itself
// (OB-10). Its proposal is void if the user has received a role since.
func TestSupportProposes(t *testing.T) {
	s, actor := two(t, "user disable", "user add")
	ctx, sue, anna := t.Context(), s.As(actor("sue")), s.As(actor("anna"))
	if _, err := admin.UserDisable.Do(ctx, sue, admin.UserName{Name: "root"}); !errors.Is(err, admin.ErrForbidden) {
		t.Errorf("OB-10: of an administrator: %v, want ErrForbidden", err)
	}
	eve := admin.NewUser{Name: "eve", Password: "correct horse battery", Role: "administrator"}
	if _, err := admin.UserAdd.Do(ctx, sue, eve); !errors.Is(err, admin.ErrForbidden) {
		t.Errorf("OB-10: with a role: %v, want ErrForbidden", err)
	}
	_, err := admin.UserDisable.Do(ctx, s.As(actor("root")), admin.UserName{Name: "audit"})
	p := proposed(t, err)
	if err := s.Users.SetRole(ctx, "root", admin.Support); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(ctx, anna, p.ID); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: proposed by who is support now: %v, want ErrConflict", err)
	}
}

// TestDecline checks that a proposal can be declined by a user who may run the operation, or
// withdrawn by its proposer (OB-10).
func TestDecline(t *testing.T) {
	s, actor := two(t, "client delete", "user disable")
	ctx := t.Context()
	if _, err := admin.ClientAdd.Do(ctx, s.Operator(), admin.NewClient{ID: "x", RedirectURIs: []string{
		"https://a.example/cb"}}); err != nil {
		t.Fatal(err)
	}
	root := s.As(actor("root"))
	decline := func(c admin.Caller, id string) error {
		_, err := admin.ProposalDecline.Do(ctx, c, admin.ProposalID{ID: id})
		return err
	}
	_, err := admin.ClientDelete.Do(ctx, root, admin.ClientID{ID: "x"})
	p := proposed(t, err)
	for _, name := range []string{"sue", "audit"} {
		if err := decline(s.As(actor(name)), p.ID); !errors.Is(err, admin.ErrForbidden) {
			t.Errorf("OB-10: %s declines: %v, want ErrForbidden", name, err)
		}
	}
	if err := decline(s.As(actor("anna")), p.ID); err != nil {
		t.Errorf("OB-10: %v", err)
	}
	if _, err := accept(ctx, s.As(actor("anna")), p.ID); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: it is accepted then: %v, want ErrConflict", err)
	}
	if got, err := admin.ProposalShow.Do(ctx, s.As(actor("audit")), admin.ProposalID{ID: p.ID}); err != nil ||
		got.State != "declined" || got.Decided.User != "anna" {
		t.Errorf("OB-10: got %+v, %v", got, err)
	}
	_, err = admin.UserDisable.Do(ctx, root, admin.UserName{Name: "bob"})
	if err := decline(root, proposed(t, err).ID); err != nil {
		t.Errorf("OB-10: taken back: %v", err)
	}
	if all, err := admin.ProposalList.Do(ctx, s.As(actor("audit")), admin.Paging{}); err != nil || len(all.Items) != 2 {
		t.Errorf("OB-10: got %+v, %v", all, err)
	}
}

// TestProposalsInChangedTimes checks that a proposal is void if its object has changed, if its
// proposer may no longer run the operation, or after a day (OB-10).
func TestProposalsInChangedTimes(t *testing.T) {
	s, actor := two(t, "user disable", "user set-role")
	ctx := t.Context()
	anna := actor("anna")
	try := func(what string, change func(), want error) {
		t.Helper()
		_, err := admin.UserDisable.Do(ctx, s.As(actor("root")), admin.UserName{Name: "bob"})
		p := proposed(t, err)
		change()
		anna.Proved = s.Now()
		if _, err := accept(ctx, s.As(anna), p.ID); !errors.Is(err, want) {
			t.Errorf("OB-10: %s: %v, want %v", what, err, want)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try("another mail address", func() { check(s.Users.SetMail(ctx, "bob", "bob@example.com")) }, admin.ErrConflict)
	demoted := func() { check(s.Users.SetRole(ctx, "root", admin.Auditor)) }
	try("another role of the proposer", demoted, admin.ErrConflict)
	check(s.Users.SetRole(ctx, "root", admin.Administrator))
	try("the proposer is disabled", func() { check(s.Users.Disable(ctx, "root")) }, admin.ErrConflict)
	check(s.Users.Enable(ctx, "root"))
	try("the account is gone", func() { check(s.Users.Delete(ctx, "bob")) }, admin.ErrConflict)
	_, err := admin.UserDisable.Do(ctx, s.As(actor("root")), admin.UserName{Name: "bob"})
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("OB-10: a proposal about nothing: %v, want ErrNotFound", err)
	}
	_, err = s.Users.Add(ctx, users.Account{Name: "bob", Password: "correct horse battery"})
	check(err)
	later := s.Now().Add(admin.ProposalLife + time.Minute)
	try("a day later", func() { s.Now = func() time.Time { return later } }, admin.ErrNotFound)
}

// TestPrograms checks that a program can propose, as one of the two, while it exists (OB-10).
func TestPrograms(t *testing.T) {
	s, actor := two(t, "user disable")
	ctx := t.Context()
	made, err := admin.ClientAdd.Do(ctx, s.Operator(), admin.NewClient{
		ID: "robot", GrantTypes: []string{oauth.GrantClientCredentials}, Scopes: []string{"admin:write"},
		Resources: []string{s.Own[0].URI},
	})
	if err != nil {
		t.Fatal(err)
	}
	robot := s.As(admin.Actor{ClientID: made.ID, Role: admin.Administrator, Program: true})
	propose := func() admin.Proposal {
		_, err := admin.UserDisable.Do(ctx, robot, admin.UserName{Name: "bob"})
		return proposed(t, err)
	}
	first, second := propose(), propose()
	if _, err := accept(ctx, s.As(actor("anna")), first.ID); err != nil || first.By.Client != made.ID {
		t.Errorf("OB-10: %+v: %v", first.By, err)
	}
	if _, err := admin.UserEnable.Do(ctx, s.Operator(), admin.UserName{Name: "bob"}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ClientDelete.Do(ctx, s.Operator(), admin.ClientID{ID: made.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := accept(ctx, s.As(actor("anna")), second.ID); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("OB-10: the program is gone: %v, want ErrConflict", err)
	}
}

// TestOneAccepts checks that of 32 concurrent acceptances only one runs the operation (OB-10).
func TestOneAccepts(t *testing.T) {
	s, actor := two(t, "keys rotate")
	_, err := admin.KeysRotate.Do(t.Context(), s.As(actor("root")), admin.KeyRotation{})
	p := proposed(t, err)
	anna := actor("anna")
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 32 {
		all.Go(func() {
			_, err := accept(t.Context(), s.As(anna), p.ID)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !errors.Is(err, admin.ErrConflict) {
				t.Errorf("OB-10: got %v, want ErrConflict", err)
			}
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("OB-10: %d accept, want 1", won)
	}
}

// TestCheckTwo checks that an unknown operation name is refused, because it would protect nothing
// (OB-10).
func TestCheckTwo(t *testing.T) {
	for _, name := range []string{"user lock", "user list", "proposal accept", ""} {
		if err := admin.CheckTwo([]string{"user delete", name}); err == nil {
			t.Errorf("OB-10: %q is taken", name)
		}
	}
}
