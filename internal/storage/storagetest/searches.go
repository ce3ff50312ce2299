package storagetest

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func searches(t *testing.T, e *env) {
	for id, mail := range map[string]string{
		"usr_1 Anna": "", "usr_2 bertA": "Berta@Example.com", "usr_3 ÖZGE": "", "usr_4 100%_a": "",
		"usr_5 x": "a\\b@example.com",
	} {
		check(t, e.s.CreateUser(e.ctx, storage.User{ID: id[:5], Name: id[6:], Mail: mail, CreatedAt: e.now}))
	}
	people := func(q storage.Search) (names []string, next string) {
		t.Helper()
		found, next, err := e.s.SearchUsers(e.ctx, q)
		check(t, err)
		for _, u := range found {
			names = append(names, u.Name)
		}
		return names, next
	}
	t.Run("OB-11 an account is found by a part of its name, its mail address or its id, in any case", func(t *testing.T) {
		for text, want := range map[string][]string{
			"NN": {"Anna"}, "a": {"100%_a", "Anna", "bertA", "x"}, "EXAMPLE.c": {"bertA", "x"}, "R_3": {"ÖZGE"},
			"özg": {"ÖZGE"}, "ÖZ": {"ÖZGE"}, "": {"100%_a", "Anna", "bertA", "x", "ÖZGE"}, "nobody": nil,
			"%": {"100%_a"}, "_a": {"100%_a"}, "n_a": nil, "%A": nil, `\b`: {"x"}, `\`: {"x"}, "'": nil,
		} {
			got, next := people(storage.Search{Text: text, Limit: 9, Scan: 9})
			same(t, got, want)
			same(t, next, "")
		}
	})
	t.Run("OB-11 accounts that are found come page by page", func(t *testing.T) {
		got, _ := people(storage.Search{Text: "a", Limit: 2, Scan: 9})
		same(t, got, []string{"100%_a", "Anna"})
		got, _ = people(storage.Search{Text: "a", After: "ANNA", Limit: 2, Scan: 9})
		same(t, got, []string{"bertA", "x"})
	})
	t.Run("OB-11 a search looks at no more accounts than it may, and says where to go on", func(t *testing.T) {
		got, next := people(storage.Search{Text: "özge", Limit: 9, Scan: 2})
		same(t, got, []string(nil))
		same(t, next, "anna")
		got, next = people(storage.Search{Text: "özge", After: next, Limit: 9, Scan: 2})
		same(t, got, []string(nil))
		same(t, next, "x")
		got, next = people(storage.Search{Text: "özge", After: next, Limit: 9, Scan: 2})
		same(t, got, []string{"ÖZGE"})
		same(t, next, "")
		_, next = people(storage.Search{Text: "özge", Limit: 9, Scan: 5})
		same(t, next, "")
	})
	clientSearches(t, e)
}

func clientSearches(t *testing.T, e *env) {
	for id, name := range map[string]string{
		"mcp_Aa": "Claude", "mcp_Bb": "Bücher", "https://claude.ai/x": "", "mcp_gone": "Claude too",
	} {
		check(t, e.s.PutClient(e.ctx, storage.Client{ID: id, Name: name, CreatedAt: e.now}))
	}
	check(t, e.s.DeleteClient(e.ctx, "mcp_gone", e.now))
	search := func(q storage.Search) (ids []string, next string) {
		t.Helper()
		found, next, err := e.s.SearchClients(e.ctx, q)
		check(t, err)
		for _, c := range found {
			ids = append(ids, c.ID)
		}
		return ids, next
	}
	t.Run("OB-11 a client is found by a part of its name or id, in any case of ASCII letters", func(t *testing.T) {
		for text, want := range map[string][]string{
			"CLAUDE": {"https://claude.ai/x", "mcp_Aa"}, "mcp_aA": {"mcp_Aa"}, "bücH": {"mcp_Bb"}, "BÜCH": nil,
			"p%": nil, "_": {"mcp_Aa", "mcp_Bb"},
		} {
			got, next := search(storage.Search{Text: text, Limit: 9, Scan: 9})
			same(t, got, want)
			same(t, next, "")
		}
	})
	t.Run("OB-11 a search looks at no more clients than it may, and says where to go on", func(t *testing.T) {
		got, next := search(storage.Search{Text: "bb", Limit: 9, Scan: 2})
		same(t, got, []string(nil))
		same(t, next, "mcp_Aa")
		got, next = search(storage.Search{Text: "bb", After: next, Limit: 9, Scan: 2})
		same(t, got, []string{"mcp_Bb"})
		same(t, next, "")
	})
}
