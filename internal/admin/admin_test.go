package admin_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestOperations checks that the declarations of operations are consistent for all front ends
// (OB-10).
func TestOperations(t *testing.T) {
	name := regexp.MustCompile(`^[a-z-]+ [a-z-]+( [a-z-]+)?$`)
	inPath := regexp.MustCompile(`{([a-z_]+)}`)
	for _, v := range admin.All() {
		s := v.Spec()
		if !name.MatchString(s.Name) || s.Summary == "" || strings.HasSuffix(s.Summary, ".") {
			t.Errorf("OB-10: %q says %q", s.Name, s.Summary)
		}
		if !s.Changes() && s.Fresh || s.Changes() && s.Permits(admin.Auditor) {
			t.Errorf("OB-10: %s changes %v, fresh %v, for %v", s.Name, s.Changes(), s.Fresh, s.Roles)
		}
		fields := jsonFields(v.Input())
		for _, f := range inPath.FindAllStringSubmatch(s.Path, -1) {
			if !fields[f[1]] {
				t.Errorf("%s: its input has no field %s", s.Name, f[1])
			}
		}
	}
}

// TestEveryOperationIsListed checks that All has every operation of the source once, sorted by name.
func TestEveryOperationIsListed(t *testing.T) {
	var names []string
	paths := map[string]string{}
	for _, v := range admin.All() {
		s := v.Spec()
		at := s.Method + " " + s.Path
		if other := paths[at]; other != "" {
			t.Errorf("%s and %s are both %s", other, s.Name, at)
		}
		paths[at] = s.Name
		names = append(names, s.Name)
	}
	defined := definedNames(t)
	for _, name := range defined {
		if !slices.Contains(names, name) {
			t.Errorf("All lacks %q", name)
		}
	}
	if len(names) != len(defined) || !slices.IsSorted(names) {
		t.Errorf("All has %d operations, the source %d; sorted: %v", len(names), len(defined), slices.IsSorted(names))
	}
}

// definedNames returns the names in the calls of define.
func definedNames(t *testing.T) (out []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if fun, ok := call.Fun.(*ast.Ident); !ok || fun.Name != "define" {
				return true
			}
			name := ""
			ast.Inspect(call.Args[0], func(n ast.Node) bool {
				pair, ok := n.(*ast.KeyValueExpr)
				if !ok || pair.Key.(*ast.Ident).Name != "Name" {
					return true
				}
				if lit, ok := pair.Value.(*ast.BasicLit); ok {
					name, _ = strconv.Unquote(lit.Value)
				}
				return false
			})
			out = append(out, name)
			return true
		})
	}
	return out
}

func jsonFields(in reflect.Type) map[string]bool {
	out := map[string]bool{}
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}

func newService(t *testing.T, at time.Time) *admin.Service {
	store := installation.Store(t)
	accounts, err := users.New(users.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &admin.Service{Store: store, Users: accounts, FreshFor: admin.FreshFor, Now: func() time.Time { return at }}
}

// TestPermission checks that a role has exactly the operations that name it (OB-10).
func TestPermission(t *testing.T) {
	now := time.Now()
	s := newService(t, now)
	if _, err := s.Users.Add(t.Context(), users.Account{Name: "bob", Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	bob := admin.UserName{Name: "bob"}
	stale := &admin.StaleError{}
	fresh, old := now.Add(-time.Minute), now.Add(-admin.FreshFor-time.Second)
	for _, c := range []struct {
		actor         admin.Actor
		show, disable error
	}{
		{admin.Actor{Role: admin.Administrator, Proved: fresh}, nil, nil},
		{admin.Actor{Role: admin.Administrator, Proved: old}, nil, stale},
		{admin.Actor{Role: admin.Administrator}, nil, stale},
		{admin.Actor{Role: admin.Administrator, Program: true}, nil, nil},
		{admin.Actor{Role: admin.Support, Proved: fresh}, nil, nil},
		{admin.Actor{Role: admin.Support, Proved: old}, nil, stale},
		{admin.Actor{Role: admin.Auditor, Proved: fresh}, nil, admin.ErrForbidden},
		{admin.Actor{Proved: fresh}, admin.ErrForbidden, admin.ErrForbidden},
	} {
		_, show := admin.UserShow.Do(t.Context(), s.As(c.actor), bob)
		_, disable := admin.UserDisable.Do(t.Context(), s.As(c.actor), bob)
		if !same(show, c.show) || !same(disable, c.disable) {
			t.Errorf("OB-10: %+v: show %v, disable %v", c.actor, show, disable)
		}
	}
	_, err := admin.UserShow.Do(t.Context(), s.Operator(), admin.UserName{Name: "nobody"})
	if !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("an unknown user: %v", err)
	}
}

func same(got, want error) bool {
	var stale *admin.StaleError
	if errors.As(want, &stale) {
		return errors.As(got, &stale)
	}
	return errors.Is(got, want)
}

// TestPages checks that a list contains each item once, for any page size.
func TestPages(t *testing.T) {
	s := newService(t, time.Now())
	for i := range 5 {
		if _, err := s.Users.Create(t.Context(), fmt.Sprintf("user%d", i), "correct horse battery", false); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit <= 6; limit++ {
		var names []string
		_, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.User], error) {
			p.Limit = limit
			got, err := admin.UserList.Do(t.Context(), s.Operator(), admin.Searched{Paging: p})
			for _, u := range got.Items {
				names = append(names, u.Name)
			}
			return got, err
		})
		if err != nil || strings.Join(names, " ") != "user0 user1 user2 user3 user4" {
			t.Errorf("pages of %d: %v, %v", limit, names, err)
		}
	}
}

// TestPagesWithoutEnd checks that a server behind --remote cannot keep a command reading forever.
func TestPagesWithoutEnd(t *testing.T) {
	asked := 0
	for name, next := range map[string]func(admin.Paging) string{
		"the same again": func(admin.Paging) string { return "x" },
		"always another": func(admin.Paging) string { return fmt.Sprint(asked) },
	} {
		asked = 0
		_, err := admin.Everything(func(p admin.Paging) (admin.Page[string], error) {
			asked++
			return admin.Page[string]{Next: next(p)}, nil
		})
		if err == nil || err.Error() != "admin: the pages of a list have no end" {
			t.Errorf("%s: got %v after %d pages", name, err, asked)
		}
	}
}
