package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is where a configuration is loaded from.
type Source struct {
	// File is the file named by --config; it must exist. Empty: the first of the usual
	// places that has one.
	File string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
}

// Loaded is a configuration with what was noticed on the way.
type Loaded struct {
	*Config
	File     string   // the file that was read, "" for none
	Warnings []string // unknown environment variables
}

// Load reads a configuration: defaults, then the file, then the environment. It does
// not validate, because flags come after it.
func Load(s Source) (*Loaded, error) {
	env := newEnviron(s.Environ)
	l := &Loaded{Config: Default(env.get)}
	file, err := find(s.File, env.get)
	if err != nil {
		return nil, err
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		if err := l.readYAML(file, text); err != nil {
			return nil, err
		}
		l.File = file
	}
	if l.Warnings, err = l.readEnv(env); err != nil {
		return nil, err
	}
	return l, l.readSecretFiles()
}

// find returns the file to read, "" when there is none.
func find(named string, getenv func(string) string) (string, error) {
	if named == "" {
		named = getenv("MCP_AUTHD_CONFIG")
	}
	if named != "" {
		if _, err := os.Stat(named); err != nil {
			return "", fmt.Errorf("configuration file %s cannot be read: %w", named, errors.Unwrap(err))
		}
		return named, nil
	}
	user := getenv("XDG_CONFIG_HOME")
	if user == "" {
		user = filepath.Join(getenv("HOME"), ".config")
	}
	for _, f := range []string{"mcp-authd.yaml", filepath.Join(user, "mcp-authd", "config.yaml"), "/etc/mcp-authd/config.yaml"} {
		if _, err := os.Stat(f); err == nil {
			return f, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("configuration file %s cannot be read: %w", f, err)
		}
	}
	return "", nil
}

// readYAML overlays a file. Unknown and repeated keys are errors that show the line.
func (l *Loaded) readYAML(name string, text []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(l.Config)
	switch {
	case errors.Is(err, io.EOF):
		return nil // an empty file
	case err != nil:
		return explain(name, text, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: it has a second document, after a line ---, which would not be read; join the two", name)
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err == nil && len(tree.Content) == 1 {
		note(l.origins, "", tree.Content[0], name)
	}
	return nil
}

// note records which keys a file sets.
func note(origins map[string]string, path string, n *yaml.Node, file string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			note(origins, join(path, n.Content[i].Value), n.Content[i+1], file)
		}
	default:
		origins[path] = fmt.Sprintf("%s:%d", file, n.Line)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+): (.*)`)
	yamlField = regexp.MustCompile(`field (\S+) not found in type`)
	// secretLine finds values that are not shown: also where the key is misspelled a little.
	secretLine = regexp.MustCompile(`(?i)((?:\w*(?:secret|url|proxy|jwks)\w*|\bkey)["']?:).*`)
)

// explain turns the YAML library's message into file:line, what is wrong, the line
// itself with a caret, and the nearest key, without Go's names for things.
func explain(name string, text []byte, err error) error {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	n, _ := strconv.Atoi(m[1])
	what, column := m[2], 0
	lines := strings.Split(string(text), "\n")
	line := ""
	if n >= 1 && n <= len(lines) {
		line = strings.TrimRight(lines[n-1], "\r")
	}
	if f := yamlField.FindStringSubmatch(what); f != nil {
		what = fmt.Sprintf("unknown key %q", f[1])
		if near := nearest(f[1], allKeys()); near != "" {
			what += fmt.Sprintf(" (did you mean %q?)", near)
		}
		column = max(0, strings.Index(line, f[1]))
	} else {
		what = plain(what)
		column = len(line) - len(strings.TrimLeft(line, " "))
	}
	line = secretLine.ReplaceAllString(line, "$1 (not shown)")
	return fmt.Errorf("%s:%d: %s\n  %s\n  %s^", name, n, what, line, strings.Repeat(" ", column))
}

var yamlType = regexp.MustCompile(`^cannot unmarshal !!(\w+)(?: (.*))? into (\S+)$`)

// plain says what was found and what was expected in words of YAML, not of Go.
func plain(what string) string {
	m := yamlType.FindStringSubmatch(what)
	if m == nil {
		return what
	}
	found, want := "a group of keys", "a group of keys"
	switch {
	case m[2] != "" && strings.HasSuffix(m[3], "config.Secret"):
		found = "a single value" // never repeat it
	case m[2] != "":
		found = strconv.Quote(strings.Trim(m[2], "`"))
	case m[1] == "seq":
		found = "a list"
	}
	switch kind := m[3]; {
	case strings.HasPrefix(kind, "[]"):
		want = "a list"
	case kind == "bool":
		want = "true or false"
	case kind == "int":
		want = "a number"
	case kind == "string", kind == "config.Secret":
		want = "a single value"
	}
	return fmt.Sprintf("%s where %s is expected", found, want)
}

// allKeys are the last parts of every key, for suggestions.
func allKeys() []string {
	var out []string
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range fields(t) {
			out = append(out, f.key)
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Config]())
	return out
}

// nearest returns the candidate within a third of its length in edits, "" for none.
func nearest(s string, candidates []string) string {
	best, found := len(s)/3+2, ""
	for _, c := range candidates {
		if d := distance(s, c); d < best {
			best, found = d, c
		}
	}
	return found
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
