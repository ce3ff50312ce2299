package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func loadText(t *testing.T, text string) (*Loaded, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Source{File: file})
	if err == nil {
		err = l.Validate()
	}
	return l, err
}

const ruled = `
resources:
  - uri: https://mcp.example.com/mcp
    scopes:
      - {name: notes, every_call: true}
      - {name: notes:write}
      - {name: notes:admin, implies: [notes:write]}
    access:
`

// TestAccessRules checks that the configuration says which users may have which scopes (RU-19).
func TestAccessRules(t *testing.T) {
	c, err := loadText(t, ruled+`
      - {user: usr_bob, scopes: [notes]}
      - {group: editors, scopes: [notes, notes:admin]}
      - {everyone: true, none: true}
      - {group: owners, all: true, approve: [pay, "delete_*"]}`)
	if err != nil {
		t.Fatal(err)
	}
	const uri = "https://mcp.example.com/mcp"
	want := []storage.AccessRule{
		{Resource: uri, UserID: "usr_bob", Scopes: []string{"notes"}, Config: true},
		{Resource: uri, Group: "editors", Scopes: []string{"notes", "notes:write", "notes:admin"}, Config: true},
		{Resource: uri, Config: true},
		{Resource: uri, Group: "owners", All: true, Config: true, Approve: []string{"pay", "delete_*"}},
	}
	if got := c.AccessRules(); !reflect.DeepEqual(got, want) {
		t.Errorf("RU-19: got %+v, want %+v", got, want)
	}
	for rule, says := range map[string]string{
		"{scopes: [notes]}":                                   "exactly one of user",
		"{user: bob, everyone: true, all: true}":              "exactly one of user",
		"{user: usr_b}":                                       "exactly one of scopes",
		"{user: usr_b, all: true, none: true}":                "exactly one of scopes",
		"{user: usr_b, none: true, approve: [pay]}":           "must not set approve with none",
		"{user: usr_b, all: true, approve: ['a*b']}":          "only at the end",
		"{user: bob, all: true}":                              "not the id of an account",
		"{group: The Staff, all: true}":                       "not a valid group name",
		"{group: staff, scopes: [other]}":                     "not a scope of https://mcp.example.com/mcp",
		"{group: staff, scopes: [notes:write]}":               "the rule would let nobody in",
		"{user: usr_b, all: true}, {user: usr_b, none: true}": "duplicates an earlier rule",
	} {
		_, err := loadText(t, ruled+"      ["+rule+"]")
		if err == nil || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "resources[0].access[") {
			t.Errorf("RU-19 %s: got %v, want %q", rule, err, says)
		}
	}
}
