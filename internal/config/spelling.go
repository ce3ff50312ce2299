package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// misspelled returns, by key, why a value is probably a mistake: it is still in quotes, contains an
// unexpanded variable, or is of the wrong kind. It checks every key from any source. It repeats no
// value, because each may be a secret.
func (c *Config) misspelled() map[string]error {
	found := map[string]error{}
	c.spelling(reflect.ValueOf(c).Elem(), "", "", found)
	return found
}

// spelling checks the values of one group. key is its name in messages, and path its name in
// origins.
func (c *Config) spelling(group reflect.Value, key, path string, found map[string]error) {
	look := func(key, path, text string) {
		why := misspelling(key, text)
		switch {
		case why == "":
			return
		case why == hasVariable && !strings.HasPrefix(c.origin(path), "$"):
			why += ", or set " + variable(path) + " in the environment"
		}
		found[key] = fmt.Errorf("%s: %s (%s)", key, why, c.origin(path))
	}
	for f := range fields(group.Type()) {
		v, key, path := group.Field(f.index), join(key, f.key), join(path, f.key)
		switch {
		case v.Kind() == reflect.Struct:
			c.spelling(v, key, path, found)
		case v.Kind() == reflect.String && c.origin(path) != "default":
			look(key, path, v.String())
		case v.Kind() == reflect.Map:
			for _, k := range v.MapKeys() {
				look(join(key, k.String()), path, v.MapIndex(k).String())
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				key := fmt.Sprintf("%s[%d]", key, i)
				if item := v.Index(i); item.Kind() == reflect.Struct {
					c.spelling(item, key, fmt.Sprintf("%s.%d", path, i), found)
				} else {
					look(key, path, item.String())
				}
			}
		}
	}
}

// verbatim lists keys whose values may contain anything: sentences, expressions, multi-line keys,
// and values that are passed to a program unchanged.
var verbatim = []string{
	"clients[].jwks", "resources[].scopes[].description", "resources[].tools[].clearance.when",
	"resources[].upstream.command[]", "thirdparty[].allow.expression", "thirdparty[].key",
	"thirdparty[].scope_rules[].expression", "trust[].match[].expression",
}

// files lists keys with paths, except those ending in _file.
var files = []string{
	"audit.sinks[].path", "branding.logo", "branding.texts", "data_dir", "resources[].upstream.dir",
	"resources[].upstream.sandbox.read[]", "resources[].upstream.sandbox.write[]",
	"tls.acme.roots", "tls.cert", "tls.key",
}

var (
	itemNumber = regexp.MustCompile(`\[\d+\]`)
	// unexpanded finds variables in the syntax of shells, Compose files and Kubernetes.
	unexpanded = regexp.MustCompile(`\$\{[A-Za-z_]\w*[^}]*\}|\$\([^)]*\)|^\$[A-Z_][A-Z0-9_]*$`)
	wholeOne   = regexp.MustCompile(`^\$\{[A-Za-z_]\w*\}$|^\$[A-Z_][A-Z0-9_]*$`)
	inPath     = regexp.MustCompile(`\$[A-Za-z_{(]`)
)

const (
	inQuotes    = "must not be in quotes, which docker run --env-file and others keep"
	hasVariable = "must not contain a variable, which nothing replaces here: write the value itself"
	aroundIt    = "must not begin or end with white space"
	ofAHome     = "must not begin with ~, which only a shell replaces: write the whole path"
)

// misspelling returns why text is not a valid value of a key, or "".
func misspelling(key, text string) string {
	kind := itemNumber.ReplaceAllString(key, "[]")
	isFile := strings.HasSuffix(kind, "_file") || slices.Contains(files, kind)
	isKey := kind == "secret_key" || kind == "secret_key_old[]"
	why := ""
	switch trimmed := strings.TrimSpace(text); {
	case slices.Contains(verbatim, kind):
	case kind == "resources[].upstream.env[]": // the rest belongs to the program
		if _, value, _ := strings.Cut(text, "="); wholeOne.MatchString(value) {
			why = "must not be a variable, which nothing replaces here: name it in pass_env"
		}
	case quoted(trimmed), isFile && strings.IndexAny(trimmed, "\"'") == 0: // a command may have added to the path
		why = inQuotes
	case unexpanded.MatchString(trimmed), isFile && inPath.MatchString(text):
		why = hasVariable
	case trimmed != text && !isKey: // a master key is trimmed
		why = aroundIt
	case isFile && strings.HasPrefix(text, "~"):
		why = ofAHome
	case kind == "database.url":
		why = databaseFault(text)
	}
	if why != "" && isKey && len(strings.TrimSpace(text)) >= secrets.KeySize {
		why += keepKey
	}
	return why
}

// keepKey helps installations that have used such a key before it was refused.
const keepKey = "; if a server has run with it, that text is its key: to keep it, write the text, all of it, " +
	"in base64 instead, as this prints it: printf %s 'TEXT' | openssl base64 -A"

// quoted reports whether a value is in quotes and has no such quotes inside, as an expression may.
func quoted(s string) bool {
	return len(s) > 1 && (s[0] == '"' || s[0] == '\'') && strings.IndexByte(s[1:], s[0]) == len(s)-2
}

const (
	neither = "must be a URL such as postgres://user@host/name or the path of a SQLite file"
	encode  = "must be unambiguous: in the user and the password of a URL write @ as %40, / as %2F, : as %3A, " +
		"? as %3F, # as %23 and % as %25"
)

// Postgres reports whether the store is PostgreSQL.
func (c *Config) Postgres() bool {
	_, is := postgresURL(string(c.Database.URL))
	return is
}

func postgresURL(text string) (rest string, is bool) {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, is = strings.CutPrefix(text, scheme); is {
			return rest, true
		}
	}
	return "", false
}

// SQLitePath returns the path of the SQLite file.
func (c *Config) SQLitePath() string {
	if c.Database.URL != "" {
		return strings.TrimPrefix(string(c.Database.URL), "sqlite:")
	}
	return filepath.Join(c.DataDir, "mcp-authd.db")
}

var (
	otherLibrary = regexp.MustCompile(`^(jdbc:|(?i:postgres(?:ql)?)\+\w+:)`)
	settings     = regexp.MustCompile(`^\w+\s*=`)
	// beforeSlash matches a : or @ before the first slash, which a URL without its scheme may have
	// but a path does not.
	beforeSlash = regexp.MustCompile(`^[^/\\]*[:@]`)
)

// databaseFault returns why text names no database. A URL must not be taken for a path: that would
// create an empty database in a file with a password in its name.
func databaseFault(text string) string {
	if rest, is := postgresURL(text); is {
		return postgresFault(rest)
	}
	path := strings.TrimPrefix(text, "sqlite:")
	path = path[len(filepath.VolumeName(path)):]
	switch {
	case text == "":
	case otherLibrary.MatchString(text):
		return neither + ": replace the prefix for another library, up to ://, by postgres"
	case strings.Contains(path, "://"), settings.MatchString(path), beforeSlash.MatchString(path),
		strings.HasPrefix(path, "//"), strings.ContainsAny(path, "\"'`$?\n\r\x00"):
		return neither
	}
	return ""
}

// postgresFault checks the text after postgres:// as pgx parses it: user and password end at the
// first @ if no slash precedes it. A special character in a password would otherwise make a part of
// the password a host name, which is looked up in DNS and logged.
func postgresFault(rest string) string {
	user, after := "", rest
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, after = rest[:i], rest[i+1:]
	}
	end := strings.IndexAny(after+"/", "/?")
	switch {
	case strings.Contains(after, "@"), strings.ContainsAny(after, "#\"'"), settingIn.MatchString(user):
		return encode
	case badEscape.MatchString(rest + "  "), blank.MatchString(rest):
		return encode
	}
	for host := range strings.SplitSeq(after[:end], ",") {
		m := hostAndPort.FindStringSubmatch(host)
		if m == nil {
			return encode
		}
		if _, err := strconv.ParseUint(m[1], 10, 16); m[1] != "" && err != nil {
			return encode
		}
	}
	return ""
}

var (
	settingIn   = regexp.MustCompile(`\?\w+=`)
	blank       = regexp.MustCompile(`[\x00-\x20\x7f]`)
	badEscape   = regexp.MustCompile(`%(?:[^0-9A-Fa-f]|[0-9A-Fa-f][^0-9A-Fa-f])`)
	hostAndPort = regexp.MustCompile(`^(?:\[[0-9A-Fa-f:.%\w]+\]|(?:[\w.-]|[^\x00-\x7f]|%[0-9A-Fa-f]{2})*)(?::(\d*))?$`)
)

// CheckSecretKey returns an error for a master key from outside the configuration that is probably
// misspelled.
func CheckSecretKey(text string) error {
	if why := misspelling("secret_key", text); why != "" {
		return errors.New(why)
	}
	return nil
}
