package admin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

// TestSearchedPages checks that a search returns each match once, for any page size, even with
// clients from two sources (OB-11).
func TestSearchedPages(t *testing.T) {
	s := installed(t)
	s.Clients = func() ([]storage.Client, error) {
		return []storage.Client{
			{ID: "one", Name: "Other", Source: storage.SourceConfig},
			{ID: "two", Name: "My ROBOT", Source: storage.SourceConfig},
		}, nil
	}
	for i, name := range []string{"Robot arm", "100%", "robots", "_"} {
		in := admin.NewClient{ID: fmt.Sprint("stored", i), Name: name, RedirectURIs: []string{"https://a.example/cb"}}
		if _, err := admin.ClientAdd.Do(t.Context(), s.Operator(), in); err != nil {
			t.Fatal(err)
		}
		name = strings.NewReplacer(" ", "", "%", "").Replace(name)
		account := users.Account{Name: name, Password: "correct horse battery"}
		if _, err := s.Users.Add(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit <= 4; limit++ {
		for match, want := range map[string][2]string{
			"robot": {"Robotarm robots", "two stored0 stored2"}, "%": {"", "stored1"}, "rob_t": {"", ""},
			"STORED": {"", "stored0 stored1 stored2 stored3"},
		} {
			var people, clients []string
			_, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.User], error) {
				p.Limit = limit
				got, err := admin.UserList.Do(t.Context(), s.Operator(), admin.Searched{Match: match, Paging: p})
				for _, u := range got.Items {
					people = append(people, u.Name)
				}
				return got, err
			})
			_, other := admin.Everything(func(p admin.Paging) (admin.Page[admin.Client], error) {
				p.Limit = limit
				got, err := admin.ClientList.Do(t.Context(), s.Operator(), admin.Searched{Match: match, Paging: p})
				for _, c := range got.Items {
					clients = append(clients, c.ID)
				}
				return got, err
			})
			got := [2]string{strings.Join(people, " "), strings.Join(clients, " ")}
			if err != nil || other != nil || got != want {
				t.Errorf("OB-11: %q in pages of %d: got %q, want %q (%v, %v)", match, limit, got, want, err, other)
			}
		}
	}
	long := admin.Searched{Match: strings.Repeat("x", 257)}
	if _, err := admin.UserList.Do(t.Context(), s.Operator(), long); !errors.Is(err, admin.ErrInvalid) {
		t.Errorf("OB-11: a text of 257 bytes: got %v, want ErrInvalid", err)
	}
}
