package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// TestMisspelledValues checks that no key accepts a value with the quotes of an env file, with
// spaces around it, or with a variable in it (RU-09). No path may start with ~. The error must not
// repeat the value.
func TestMisspelledValues(t *testing.T) {
	spellings := []struct {
		value, why string
		pathsOnly  bool
	}{
		{value: `"geheim7"`, why: inQuotes},
		{value: `'geheim7'`, why: inQuotes},
		{value: ` "geheim7"`, why: inQuotes},
		{value: ` geheim7`, why: aroundIt},
		{value: "geheim7\n", why: aroundIt},
		{value: `${geheim7}`, why: hasVariable},
		{value: `a-${geheim7:-x}-b`, why: hasVariable},
		{value: `$(geheim7)`, why: hasVariable},
		{value: `$GEHEIM7`, why: hasVariable},
		{value: `"/geheim7"/protect`, why: inQuotes, pathsOnly: true},
		{value: `~`, why: ofAHome, pathsOnly: true},
		{value: `~/geheim7`, why: ofAHome, pathsOnly: true},
		{value: `$HOME/geheim7`, why: hasVariable, pathsOnly: true},
	}
	c := Default(func(string) string { return "" })
	fillLists(reflect.ValueOf(c).Elem())
	tried := 0
	eachText(c, reflect.ValueOf(c).Elem(), "", "", func(key string, put func(string)) {
		kind := itemNumber.ReplaceAllString(key, "[]")
		isFile := strings.HasSuffix(kind, "_file") || slices.Contains(files, kind)
		if slices.Contains(verbatim, kind) || kind == "resources[].upstream.env[]" {
			return
		}
		tried++
		for _, s := range spellings {
			if s.pathsOnly && !isFile || s.why == aroundIt && strings.HasPrefix(kind, "secret_key") {
				continue
			}
			put(s.value)
			said := ""
			for line := range strings.Lines(c.Validate().Error()) {
				if strings.HasPrefix(line, key+": ") {
					said += line
				}
			}
			if !strings.HasPrefix(said, key+": "+s.why) || strings.Count(said, "\n") > 1 {
				t.Errorf("RU-09: %s: %q: got %q, want one line with %q", key, s.value, said, s.why)
			}
			if strings.Contains(strings.ToLower(said), "geheim7") {
				t.Errorf("RU-09: %s: %q is repeated: %s", key, s.value, said)
			}
			put("")
		}
	})
	if tried < 150 {
		t.Errorf("RU-09: tried %d keys", tried)
	}
}

// eachText calls try for each key with a text, with a function that sets the text.
func eachText(c *Config, v reflect.Value, key, path string, try func(key string, put func(string))) {
	for f := range fields(v.Type()) {
		at, key, path := v.Field(f.index), join(key, f.key), join(path, f.key)
		before := reflect.New(at.Type()).Elem()
		before.Set(at)
		put := func(text string) {
			at.Set(before)
			delete(c.origins, path)
			if text == "" {
				return
			}
			c.origins[path] = "a test"
			to := at
			if at.Kind() == reflect.Slice {
				at.Set(reflect.MakeSlice(at.Type(), 1, 1))
				to = at.Index(0)
			}
			to.SetString(text)
		}
		switch {
		case at.Kind() == reflect.Struct:
			eachText(c, at, key, path, try)
		case listOfGroups(at.Type()):
			eachText(c, at.Index(0), key+"[0]", path+".0", try)
		case at.Kind() == reflect.String:
			try(key, put)
		case at.Kind() == reflect.Slice && at.Type().Elem().Kind() == reflect.String:
			try(key+"[0]", put)
		}
	}
}

// TestUnusualValues checks that valid values that look similar are accepted (RU-09).
func TestUnusualValues(t *testing.T) {
	for _, v := range []struct{ key, value string }{
		{"mail.smtp.password", `"`}, {"mail.smtp.password", `"ab"cd"`}, {"mail.smtp.password", `$2a$10$${}$(`},
		{"mail.smtp.password", "$ecret"}, {"clients[0].secret", `'it's'`},
		{"thirdparty[0].allow.expression", `"a" in groups`}, {"resources[0].upstream.command[2]", `"${HOME}"`},
		{"resources[0].upstream.env[0]", `FORMAT="${time} ${level}"`}, {"data_dir", "/srv/a$1/b~"},
		{"trust[0].subject", "ci:{{.sub}}"}, {"thirdparty[0].key", "-----BEGIN PRIVATE KEY-----\n"},
		{"secret_key", strings.Repeat("ab", 32) + "\n"},
	} {
		if why := misspelling(v.key, v.value); why != "" {
			t.Errorf("RU-09: %s: %q: %s", v.key, v.value, why)
		}
	}
}

// TestDatabaseURL checks that an invalid PostgreSQL URL does not become a file name, and that an
// ambiguous URL is not repeated (RU-09).
func TestDatabaseURL(t *testing.T) {
	for _, v := range []struct{ url, want string }{
		{`"postgres://authd:geheim7@db/authd"`, inQuotes},
		{`'postgres://authd:geheim7@db/authd'`, inQuotes},
		{` postgres://authd:geheim7@db/authd`, aroundIt},
		{"postgres://authd:geheim7@db/authd\n", aroundIt},
		{`${DATABASE_URL}`, hasVariable},
		{`postgres://authd:${geheim7}@db/authd`, hasVariable},
		{`jdbc:postgresql://db/authd?password=geheim7`, neither + ": replace the prefix"},
		{`postgres+asyncpg://authd:geheim7@db/authd`, neither + ": replace the prefix"},
		{`postgresql+psycopg2://authd:geheim7@db/authd`, neither + ": replace the prefix"},
		{`mysql://authd:geheim7@db/authd`, neither},
		{`sqlite:///var/lib/geheim7.db`, neither},
		{`file:geheim7.db?mode=rwc`, neither},
		{`:memory:`, neither},
		{`Postgres://authd:geheim7@db/authd`, neither},
		{`postgres:authd:geheim7@db/authd`, neither},
		{`host=db password=geheim7`, neither},
		{`authd:geheim7@db/authd`, neither},
		{`//authd:geheim7@db/authd`, neither},
		{`db:5432/geheim7`, neither},
		{`"postgres://authd:geheim7@db/authd`, neither},
		{`$DATABASE/geheim7`, neither},
		{`geheim7.db?_journal=WAL`, neither},
		{`postgres://authd:fee@geheim7@db/authd`, encode},
		{`postgres://authd:fee/geheim7@db/authd`, encode},
		{`postgres://authd:12/geheim7@db/authd`, encode},
		{`postgres://authd:fee@gar/den#geheim7@db/authd`, encode},
		{`postgres://authd:fee@db/authd#geheim7`, encode},
		{`postgres://authd:50%geheim7@db/authd`, encode},
		{`postgres://authd:geheim7%`, encode},
		{`postgres://authd:geheim7/authd`, encode},
		{`postgres://authd:p@geheim7?a=b@db/authd`, encode},
		{`postgres://db?user=authd&password=fee@geheim7`, encode},
		{`postgres://authd:fee geheim7@db/authd`, encode},
		{`postgres://authd:fee@db:54x2/geheim7`, encode},
		{`postgres://authd:fee@db:99999/geheim7`, encode},
	} {
		c := Default(func(string) string { return "" })
		c.Database.URL = Secret(v.url)
		c.SetOrigin("database.url", "$MCP_AUTHD_DATABASE_URL")
		err := fmt.Sprint(c.Validate())
		if !strings.HasPrefix(err, "database.url: "+v.want) || !strings.HasSuffix(err, "($MCP_AUTHD_DATABASE_URL)") {
			t.Errorf("RU-09: %q: got %v, want %q", v.url, err, v.want)
		}
		if strings.Contains(err, "geheim7") || strings.Contains(err, "fee") {
			t.Errorf("RU-09: %q is repeated: %v", v.url, err)
		}
	}
	for _, url := range []string{
		"", "authd.db", "./a/b.db", "/var/lib/mcp-authd@1/a:b=c.db", "sqlite:/var/lib/a.db", "sqlite:a.db",
		"postgres://db/authd", "postgresql://authd@db:5432/authd?sslmode=verify-full",
		"postgres://authd:a%40b%2F%25@db/authd", "postgres://authd:a:b?c#d'e@db/authd",
		"postgres://authd@h1:5432,h2:5433/authd?target_session_attrs=read-write", "postgres://authd@[::1]:5432/authd",
		"postgres:///authd?host=/var/run/postgresql", "postgres://%2Fvar%2Frun%2Fpostgresql/authd", "postgres://db",
	} {
		if why := misspelling("database.url", url); why != "" {
			t.Errorf("RU-09: %q: %s", url, why)
		}
	}
}

// TestMisspelledKeyCanBeKept checks that the advice in the error for a misspelled master key
// preserves that key (RU-09).
func TestMisspelledKeyCanBeKept(t *testing.T) {
	const text = `"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="`
	if err := CheckSecretKey(text); err == nil || !strings.Contains(err.Error(), "openssl base64 -A") {
		t.Errorf("RU-09: got %v", err)
	}
	const encoded = "Ik1ERXlNelExTmpjNE9UQXhNak0wTlRZM09Ea3dNVEl6TkRVMk56ZzVNREU9Ig==" // the output of openssl
	before, err := secrets.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := secrets.ParseKey(encoded); err != nil || string(kept) != string(before) {
		t.Errorf("RU-09: got %q, %v, want %q", kept, err, before)
	}
	if CheckSecretKey(encoded) != nil {
		t.Error("RU-09: the kept key is refused")
	}
	if err := CheckSecretKey(`"short"`); err == nil || strings.Contains(err.Error(), "openssl") {
		t.Errorf("RU-09: an unknown key: got %v", err)
	}
}

// TestMisspelledVariables checks that lists and file names in variables are checked before they are
// split or read (RU-09).
func TestMisspelledVariables(t *testing.T) {
	for _, v := range []struct{ variable, want string }{
		{`MCP_AUTHD_TRUSTED_PROXIES="10.0.0.0/8,10.1.0.0/16"`, "$MCP_AUTHD_TRUSTED_PROXIES: " + inQuotes},
		{`MCP_AUTHD_SECRET_KEY_FILE="/run/key"`, "$MCP_AUTHD_SECRET_KEY_FILE: " + inQuotes},
		{`MCP_AUTHD_SECRET_KEY_FILE=~/key`, "$MCP_AUTHD_SECRET_KEY_FILE: " + ofAHome},
		{`MCP_AUTHD_DATABASE_URL_FILE=${KEY}`, "$MCP_AUTHD_DATABASE_URL_FILE: " + hasVariable},
	} {
		_, err := Load(Source{File: "/dev/null", Environ: []string{v.variable}})
		if fmt.Sprint(err) != v.want {
			t.Errorf("RU-09: %s: got %v, want %s", v.variable, err, v.want)
		}
	}
}
