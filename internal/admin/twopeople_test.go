package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// robotAs adds a program that administers, on behalf of by, and returns it as an actor.
func robotAs(t *testing.T, s *admin.Service, by admin.Caller, id string) admin.Actor {
	t.Helper()
	_, err := admin.ClientAdd.Do(t.Context(), by, admin.NewClient{
		ID: id, GrantTypes: []string{oauth.GrantClientCredentials}, Scopes: []string{"admin:write"},
		Resources: []string{s.Own[0].URI},
	})
	if p := (*admin.ProposedError)(nil); errors.As(err, &p) {
		t.Fatalf("proposed: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return admin.Actor{ClientID: id, Role: admin.Administrator, Program: true}
}

// alone runs do without a list of operations for two administrators, as before one was configured.
func alone(s *admin.Service, do func()) {
	two := s.Two
	s.Two = nil
	do()
	s.Two = two
}

// TestAProgramIsItsMaker checks that a program counts as its creator, and as everyone who was shown
// its secret (EN-07, A-H2).
func TestAProgramIsItsMaker(t *testing.T) {
	s, actor := two(t, "user disable")
	ctx, bob := t.Context(), admin.UserName{Name: "bob"}
	root, anna, op := s.As(actor("root")), s.As(actor("anna")), s.Operator()
	tick := func() { now := s.Now().Add(time.Second); s.Now = func() time.Time { return now } }
	fresh := func(name string) admin.Caller {
		a := actor(name)
		a.Proved = s.Now()
		return s.As(a)
	}
	propose := func(by admin.Actor) string {
		t.Helper()
		tick()
		_, err := admin.UserDisable.Do(ctx, s.As(by), bob)
		return proposed(t, err).ID
	}
	rotate := func(by admin.Caller, id string) {
		t.Helper()
		tick()
		alone(s, func() {
			if _, err := admin.ClientRotateSecret.Do(ctx, by, admin.ClientID{ID: id}); err != nil {
				t.Fatal(err)
			}
		})
	}
	refuses := func(what, by, id string, want error) {
		t.Helper()
		if _, err := accept(ctx, fresh(by), id); !errors.Is(err, want) {
			t.Errorf("EN-07: %s: %s accepts: %v, want %v", what, by, err, want)
		}
	}
	accepts := func(what, by, id string) {
		t.Helper()
		if _, err := accept(ctx, fresh(by), id); err != nil {
			t.Errorf("EN-07: %s: %s accepts: %v", what, by, err)
		}
		if _, err := admin.UserEnable.Do(ctx, op, bob); err != nil {
			t.Fatal(err)
		}
	}
	var made, child, operated admin.Actor
	alone(s, func() {
		made = robotAs(t, s, root, "made")
		child = robotAs(t, s, s.As(made), "child") // created by a program that root created
		operated = robotAs(t, s, op, "operated")
	})
	id := propose(made)
	refuses("its maker", "root", id, admin.ErrForbidden)
	accepts("another one", "anna", id)
	id = propose(child)
	refuses("the maker of its maker", "root", id, admin.ErrForbidden)
	accepts("another one than the maker of its maker", "anna", id)

	rotate(anna, "made")
	id = propose(made)
	refuses("its maker, with a secret of another", "root", id, admin.ErrForbidden)
	refuses("who holds its secret", "anna", id, admin.ErrForbidden)

	id = propose(operated)
	accepts("a program of the operator's", "root", id)
	rotate(root, "operated")
	id = propose(operated)
	refuses("who rotated its secret", "root", id, admin.ErrForbidden)
	accepts("another one than who rotated", "anna", id)
	// A new secret does not remove earlier holders. It makes earlier proposals void.
	id = propose(operated)
	rotate(op, "operated")
	refuses("proposed with the secret of before", "root", id, admin.ErrConflict)
	refuses("proposed with the secret of before", "anna", id, admin.ErrConflict)
	id = propose(operated)
	accepts("the operator rotated", "root", id)

	// The reverse: someone accepts or proposes through an application that the proposer created.
	app := func(name string) admin.Caller {
		a := actor(name)
		a.ClientID, a.Proved = "made", s.Now()
		return s.As(a)
	}
	tick()
	_, err := admin.UserDisable.Do(ctx, fresh("root"), bob)
	id = proposed(t, err).ID
	if _, err := accept(ctx, app("anna"), id); !errors.Is(err, admin.ErrForbidden) {
		t.Errorf("EN-07: by an application of the proposer: %v, want ErrForbidden", err)
	}
	accepts("in the console", "anna", id)
	_, err = admin.UserDisable.Do(ctx, app("anna"), bob)
	id = proposed(t, err).ID
	refuses("proposed by an application of root's", "root", id, admin.ErrForbidden)
	alone(s, func() {
		if _, err := admin.ClientDelete.Do(ctx, op, admin.ClientID{ID: "made"}); err != nil {
			t.Fatal(err)
		}
	})
	refuses("proposed by an application that is gone", "root", id, admin.ErrConflict)
}

// TestAProgramOfAnEarlierVersion checks that proposals of a program whose creator is unknown wait
// for a new secret (EN-07).
func TestAProgramOfAnEarlierVersion(t *testing.T) {
	s, actor := two(t, "user disable")
	ctx := t.Context()
	robot := robotAs(t, s, s.Operator(), "robot")
	c, err := s.Store.Client(ctx, "robot")
	if err != nil {
		t.Fatal(err)
	}
	c.Metadata = nil
	if err := s.Store.ReplaceClient(ctx, c, s.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = admin.UserDisable.Do(ctx, s.As(robot), admin.UserName{Name: "bob"})
	if _, err := accept(ctx, s.As(actor("anna")), proposed(t, err).ID); !errors.Is(err, admin.ErrConflict) {
		t.Errorf("EN-07: got %v, want ErrConflict", err)
	}
	if _, err := admin.ClientRotateSecret.Do(ctx, s.Operator(), admin.ClientID{ID: "robot"}); err != nil {
		t.Fatal(err)
	}
	now := s.Now().Add(time.Second)
	s.Now = func() time.Time { return now }
	_, err = admin.UserDisable.Do(ctx, s.As(robot), admin.UserName{Name: "bob"})
	if _, err := accept(ctx, s.As(actor("anna")), proposed(t, err).ID); err != nil {
		t.Errorf("EN-07: with a new secret: %v", err)
	}
}

// TestNoWayRoundTheList checks that, if any operation needs two administrators, so do operations
// that could turn one administrator into two (EN-07). Accounts and programs that do not administer
// are exempt.
func TestNoWayRoundTheList(t *testing.T) {
	s, actor := two(t, "keys revoke")
	ctx, root := t.Context(), s.As(actor("root"))
	pass := "correct horse battery"
	program := admin.NewClient{
		GrantTypes: []string{oauth.GrantClientCredentials}, Scopes: []string{"admin:write"},
		Resources: []string{s.Own[0].URI},
	}
	robotAs(t, s, s.Operator(), "robot")
	do := func(name, role string) map[string]error {
		errs := map[string]error{}
		keep := func(what string, err error) { errs[what] = err }
		_, err := admin.UserAdd.Do(ctx, root, admin.NewUser{Name: "new" + name, Password: pass, Role: role})
		keep("user add", err)
		_, err = admin.UserInvite.Do(ctx, root, admin.Invitation{Name: "inv" + name, Role: role})
		keep("user invite", err)
		_, err = admin.UserPasswd.Do(ctx, root, admin.NewPassword{Name: name, Password: pass})
		keep("user passwd", err)
		_, err = admin.UserRecover.Do(ctx, root, admin.Recovery{Name: name})
		keep("user recover", err)
		_, err = admin.UserSetMail.Do(ctx, root, admin.NewMail{Name: name, Mail: name + "@example.com"})
		keep("user set-mail", err)
		_, err = admin.UserEnable.Do(ctx, root, admin.UserName{Name: name})
		keep("user enable", err)
		return errs
	}
	for what, err := range do("bob", "") {
		if err != nil {
			t.Errorf("EN-07: %s of a person: %v, want it done", what, err)
		}
	}
	all := do("anna", "auditor")
	_, all["user set-role"] = admin.UserSetRole.Do(ctx, root, admin.UserRole{Name: "bob", Role: "support"})
	_, all["client add"] = admin.ClientAdd.Do(ctx, root, program)
	_, all["client rotate-secret"] = admin.ClientRotateSecret.Do(ctx, root, admin.ClientID{ID: "robot"})
	for what, err := range all {
		if p := (*admin.ProposedError)(nil); !errors.As(err, &p) || p.Proposal.Operation != what {
			t.Errorf("EN-07: %s: %v, want a proposal", what, err)
		}
	}
	program.Scopes = []string{"admin:read"}
	if _, err := admin.ClientAdd.Do(ctx, root, program); err != nil {
		t.Errorf("EN-07: a program that reads: %v", err)
	}
	if _, err := admin.UserPasswd.Do(ctx, root, admin.NewPassword{Name: "root", Password: pass}); err != nil {
		t.Errorf("EN-07: one's own account: %v", err)
	}
	s.Two = nil
	if _, err := admin.UserSetRole.Do(ctx, root, admin.UserRole{Name: "bob", Role: "support"}); err != nil {
		t.Errorf("EN-07: without a list: %v", err)
	}
}

// TestHolesInTwo checks that a list is reported if it leaves out an operation with the same effect
// (EN-07).
func TestHolesInTwo(t *testing.T) {
	for hole, names := range map[string][]string{
		"grant revoke-many": {"grant revoke"}, "user delete": {"user disable"}, "client rotate-secret": {"client add"},
		"grant end-pause": {"grant resume"}, "grant resume": {"grant end-pause"}, "resource add": {"resource set"},
	} {
		if err := admin.CheckTwo(names); err != nil {
			t.Error(err)
		}
		if got := admin.HolesInTwo(names); len(got) != 1 || !strings.Contains(got[0], "by "+hole+",") {
			t.Errorf("EN-07: %v has the holes %q, want %s", names, got, hole)
		}
	}
	for _, names := range [][]string{nil, {"keys revoke"}, {
		"application block", "application delete", "application revoke", "grant revoke", "grant revoke-many",
	}} {
		if got := admin.HolesInTwo(names); got != nil {
			t.Errorf("EN-07: %v has the holes %v", names, got)
		}
	}
	// When you add a change, decide whether another operation has the same effect. For these, no
	// other has.
	whole := []string{
		"application merge", "application resume", "application split", "application unblock", "client rotate-secret",
		"events test", "grant finish", "group delete", "keys revoke", "keys rotate", "mail test", "proposal accept",
		"proposal decline", "resource accept", "resource add", "trust add", "trust enable", "trust issue add",
		"trust issue remove", "trust remove", "trust test", "trust unlink", "user delete", "user enable",
		"user sessions end", "user ways remove",
	}
	for _, v := range admin.All() {
		if name := v.Spec().Name; v.Spec().Changes() {
			if holed := len(admin.HolesInTwo([]string{name})) > 0; holed == slices.Contains(whole, name) {
				t.Errorf("EN-07: %s: the table and the list of this test do not agree", name)
			}
		}
	}
	for _, v := range admin.All() { // the table contains only operations
		for _, hole := range admin.HolesInTwo([]string{v.Spec().Name}) {
			_, others, _ := strings.Cut(hole, ": by ")
			others, _, _ = strings.Cut(others, ",")
			if err := admin.CheckTwo(strings.Split(others, " and ")); err != nil {
				t.Errorf("EN-07: %s: %v", hole, err)
			}
		}
	}
}

// TestProposalsAboutNothingYet checks that operations on objects that do not exist yet can be
// proposed (EN-07, A-M1). The proposal is void once they appear or change.
func TestProposalsAboutNothingYet(t *testing.T) {
	s, actor := two(t, "user invite", "user links withdraw")
	ctx, root, anna := t.Context(), s.As(actor("root")), s.As(actor("anna"))
	invite := func(name string) string {
		t.Helper()
		_, err := admin.UserInvite.Do(ctx, root, admin.Invitation{Name: name, Role: "auditor"})
		return proposed(t, err).ID
	}
	done, err := accept(ctx, anna, invite("new"))
	if link, ok := done.Output.(admin.Link); err != nil || !ok || link.URL == "" {
		t.Errorf("EN-07: user invite: %+v, %v", done, err)
	}
	withdraw := func(name string) (string, error) {
		_, err := admin.UserLinksWithdraw.Do(ctx, root, admin.UserName{Name: name})
		if p := (*admin.ProposedError)(nil); errors.As(err, &p) {
			return p.Proposal.ID, nil
		}
		return "", err
	}
	id, err := withdraw("new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accept(ctx, anna, id); err != nil {
		t.Errorf("EN-07: user links withdraw: %v", err)
	}
	if _, err := withdraw("new"); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("EN-07: nothing to withdraw: %v, want ErrNotFound", err)
	}
	// The object appears in between.
	account, invitation := invite("a"), invite("b")
	a := admin.NewUser{Name: "a", Password: "correct horse battery"}
	if _, err := admin.UserAdd.Do(ctx, s.Operator(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UserInvite.Do(ctx, s.Operator(), admin.Invitation{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	replaced, err := withdraw("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UserInvite.Do(ctx, s.Operator(), admin.Invitation{Name: "b", Role: "support"}); err != nil {
		t.Fatal(err)
	}
	for what, id := range map[string]string{
		"an account appeared": account, "an invitation appeared": invitation, "the invitation was replaced": replaced,
	} {
		if _, err := accept(ctx, anna, id); !errors.Is(err, admin.ErrConflict) {
			t.Errorf("EN-07: %s: %v, want ErrConflict", what, err)
		}
	}
}
