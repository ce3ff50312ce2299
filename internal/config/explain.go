package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

var (
	yamlLine  = regexp.MustCompile(`line (\d+): (.*)`)
	yamlField = regexp.MustCompile(`field (\S+) not found in type (\S+)`)
	// secretKey finds what may have a value that is not shown: also where the key is
	// misspelled a little, and a database that stands where its group should.
	secretKey = regexp.MustCompile(`(?i)(?:\w*(?:secret|url|proxy|jwks|database)\w*|\bkey)["']?:\s*`)
	yamlType  = regexp.MustCompile(`^cannot unmarshal !!(\w+)(?: (.*))? into (\S+)$`)
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
		what = fmt.Sprintf("unknown key %q", f[1]) + suggest(f[1], f[2])
		column = max(0, strings.Index(line, f[1]))
	} else {
		what = plain(what)
		column = len(line) - len(strings.TrimLeft(line, " "))
	}
	return fmt.Errorf("%s:%d: %s\n  %s\n  %s^", name, n, what, mask(line), strings.Repeat(" ", column))
}

// suggest names the key that was meant: the nearest of the same group, or the same one
// of another group.
func suggest(key, group string) string {
	keys := allKeys()
	if near := nearest(key, keys.in[group]); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	if path, ok := keys.path[key]; ok && path != key {
		return fmt.Sprintf(" here (did you mean %s?)", path)
	}
	if near := nearest(key, keys.all); near != "" && keys.path[near] != near {
		return fmt.Sprintf(" here (did you mean %s?)", keys.path[near])
	}
	return fmt.Sprintf(" (here are: %s)", strings.Join(keys.in[group], ", "))
}

// mask leaves out the rest of a line from the first value on that may be a secret. The
// plain URL is not one.
func mask(line string) string {
	for _, at := range secretKey.FindAllStringIndex(line, -1) {
		value, _, _ := strings.Cut(line[at[1]:], ",")
		value = strings.Trim(value, `"'{}[] `)
		if strings.HasPrefix(value, "http") && Secret(value).plainURL() && !strings.Contains(value, "@") {
			continue
		}
		return strings.TrimRight(line[:at[1]], " ") + " (not shown)"
	}
	return line
}

// plain says what was found and what was expected in words of YAML, not of Go.
func plain(what string) string {
	m := yamlType.FindStringSubmatch(what)
	if m == nil {
		return what
	}
	kind := m[3]
	found := "a group of keys"
	switch {
	case m[2] != "" && (strings.HasSuffix(kind, "config.Secret") || kind == "config.Database"):
		found = "a single value" // never repeat it
	case m[2] != "":
		found = strconv.Quote(strings.Trim(m[2], "`"))
	case m[1] == "seq":
		found = "a list"
	}
	return fmt.Sprintf("%s where %s is expected", found, wanted(kind))
}

// examples show the form of groups that people write as a single value.
var examples = map[string]string{
	"config.Database":   "{url: postgres://user@host/name}",
	"config.Management": "{listen: 127.0.0.1:9414}",
	"config.Resource":   "{uri: https://mcp.example.com/mcp, scopes: [...]}",
	"config.ToolRule":   `{name: "delete_*", scopes: [notes:write]}`,
	"config.Upstream":   "{url: http://127.0.0.1:3000/mcp}",
	"storage.ScopeText": "{name: mcp, description: use this server}",
}

func wanted(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		if example, ok := examples[kind[2:]]; ok {
			return "a list such as [" + example + "]"
		}
		return "a list"
	case kind == "bool":
		return "true or false"
	case kind == "int":
		return "a number"
	case kind == "string", kind == "config.Secret", kind == "storage.Access":
		return "a single value"
	}
	if example, ok := examples[kind]; ok {
		return "a group of keys such as " + example
	}
	return "a group of keys"
}

// keyNames are the last parts of every key.
type keyNames struct {
	all  []string
	in   map[string][]string // by the Go type of the group
	path map[string]string   // one place of each
}

func allKeys() keyNames {
	k := keyNames{in: map[string][]string{}, path: map[string]string{}}
	k.walk(reflect.TypeFor[Config](), "")
	return k
}

func (k *keyNames) walk(t reflect.Type, path string) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	known := k.in[t.String()] != nil
	for f := range fields(t) {
		if !known {
			k.in[t.String()] = append(k.in[t.String()], f.key)
		}
		k.all = append(k.all, f.key)
		here := join(path, f.key)
		if _, ok := k.path[f.key]; !ok {
			k.path[f.key] = here
		}
		list := f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct
		if list {
			here += "[]"
		}
		k.walk(f.Type, here)
	}
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
