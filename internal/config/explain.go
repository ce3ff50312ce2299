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
	// yamlKey finds keys. In a flow mapping, a quoted key needs no space after the colon (YAML 1.2
	// §7.4.2).
	yamlKey   = regexp.MustCompile(`["']?([A-Za-z_][\w.-]*)(?:["']\s*:\s*|\s*:(?:\s+|$))`)
	yamlStart = regexp.MustCompile(`^[\s{\[-]*$`) // the text before the first key of a line
	anchor    = regexp.MustCompile(`unknown anchor '.*' referenced`)
	yamlType  = regexp.MustCompile(`^cannot unmarshal !!?(\S+)(?: (.*))? into (\S+)$`)
	yamlValue = regexp.MustCompile("(?s)`.*`|(^|\\s)![^\\s!]\\S*") // values and tags in other messages
)

// explain turns the YAML library's message into file:line, the problem, the line with a caret, and
// the nearest key. It contains no Go names.
func explain(name string, text []byte, err error) error {
	said := anchor.ReplaceAllLiteralString(err.Error(), "a value that begins with * must be in quotes")
	m := yamlLine.FindStringSubmatch(said)
	if m == nil {
		return fmt.Errorf("%s: %s", name, yamlValue.ReplaceAllLiteralString(strings.TrimPrefix(said, "yaml: "), hidden))
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
		what = plain(what, secretAt(lines, n))
		column = len(line) - len(strings.TrimLeft(line, " "))
	}
	return fmt.Errorf("%s:%d: %s\n  %s\n  %s^", name, n, what, maskAt(lines, n), strings.Repeat(" ", column))
}

// suggest names the intended key: the nearest one of the same group, or the same word in another
// group. If neither is certain, it lists the group, because a wrong hint is worse than none.
func suggest(key, group string) string {
	keys := allKeys()
	if near := nearest(key, keys.in[group]); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	if path, ok := keys.path[key]; ok && path != key && keys.places[key] == 1 {
		return fmt.Sprintf(" here (did you mean %s?)", path)
	}
	return fmt.Sprintf(" (here are: %s)", strings.Join(keys.in[group], ", "))
}

// hidden replaces text that may be secret.
const hidden = "(not shown)"

// maskAt returns line n for an error message. n may be out of range.
func maskAt(lines []string, n int) string {
	switch {
	case n < 1 || n > len(lines):
		return ""
	case !secretAt(lines, n):
		return mask(strings.TrimRight(lines[n-1], "\r"))
	}
	return indentOf(lines[n-1]) + hidden
}

// secretAt reports whether line n may be part of a secret that starts above it. Such a line is
// indented below the key of a secret, or next to it in text that is unclosed or wrongly indented.
func secretAt(lines []string, n int) bool {
	if n < 1 || n > len(lines) {
		return false
	}
	indent, nearest := len(indentOf(lines[n-1])), true
	for i := n - 2; i >= 0; i-- {
		line := strings.TrimRight(lines[i], "\r")
		above := len(indentOf(line))
		switch key := yamlKey.MatchString(line); {
		case strings.TrimSpace(line) == "":
		case nearest && key:
			if nearest = false; mask(line) != line {
				return true
			}
			fallthrough
		case above < indent:
			if indent = above; key && (mask(line) != line || nextTo(lines, i)) {
				return true
			}
		}
	}
	return false
}

// nextTo reports whether the key above index i has a secret value.
func nextTo(lines []string, i int) bool {
	for i--; i >= 0; i-- {
		if line := strings.TrimRight(lines[i], "\r"); yamlKey.MatchString(line) {
			return mask(line) != line
		}
	}
	return false
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// mask hides the rest of a line from the first value that may be secret: the value of a secret key,
// of an unknown key, or of a group. It hides a whole line without a key, which may be part of a
// secret.
func mask(line string) string {
	keys, from := allKeys(), 0
	for i, at := range yamlKey.FindAllStringSubmatchIndex(line, -1) {
		if i == 0 && !yamlStart.MatchString(line[:at[0]]) {
			break
		}
		name, value := line[at[2]:at[3]], line[at[1]:]
		from = at[1]
		opens, group := keys.group[name]
		open := !group || value == "" || strings.IndexByte(opens, value[0]) >= 0
		if _, known := keys.places[name]; !known || keys.secret[name] || !open {
			return strings.TrimRight(line[:from], " ") + " " + hidden
		}
	}
	if from == 0 && strings.TrimSpace(line) != "" {
		return indentOf(line) + hidden
	}
	return line
}

const textForBool = "in quotes it is text: write true or false without them"

// plain describes the found and expected values in YAML terms rather than Go terms, without secret
// values.
func plain(what string, secret bool) string {
	m := yamlType.FindStringSubmatch(what)
	if m == nil {
		return yamlValue.ReplaceAllLiteralString(what, hidden)
	}
	kind := m[3]
	found := "a group of keys"
	if _, err := strconv.ParseBool(strings.Trim(m[2], "`")); err == nil && kind == "bool" && m[1] == "str" {
		return textForBool
	}
	switch {
	case m[2] != "" && secret || m[2] != "" && strings.HasPrefix(strings.TrimPrefix(kind, "[]"), "config."):
		found = "a single value" // may be a secret, so never repeat it
	case m[2] != "":
		found = strconv.Quote(strings.Trim(m[2], "`"))
	case m[1] == "seq":
		found = "a list"
	}
	return fmt.Sprintf("%s where %s is expected", found, wanted(kind))
}

// examples shows the form of groups that users often write as a single value.
var examples = map[string]string{
	"config.AccessRule": "{group: editors, scopes: [notes]}",
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

// keyNames indexes the last part of every key.
type keyNames struct {
	in     map[string][]string // by the Go type of the group
	path   map[string]string   // one path of each
	places map[string]int      // how often each occurs
	secret map[string]bool     // it is a secret somewhere
	group  map[string]string   // how its value starts, if it contains other keys
}

func allKeys() keyNames {
	k := keyNames{
		in: map[string][]string{}, path: map[string]string{}, places: map[string]int{},
		secret: map[string]bool{"jwks": true}, // which may be private by mistake
		group:  map[string]string{},
	}
	k.walk(reflect.TypeFor[Config](), "")
	return k
}

func (k *keyNames) walk(t reflect.Type, path string) {
	known := k.in[t.String()] != nil
	for f := range fields(t) {
		if !known {
			k.in[t.String()] = append(k.in[t.String()], f.key)
		}
		here, inside := join(path, f.key), f.Type
		if k.places[f.key]++; k.places[f.key] == 1 {
			k.path[f.key] = here
		}
		if f.Type.Kind() == reflect.Slice {
			inside, here = f.Type.Elem(), here+"[]"
		}
		if inside == reflect.TypeFor[Secret]() {
			k.secret[f.key] = true
		}
		if inside.Kind() == reflect.Struct {
			if f.Type.Kind() == reflect.Struct {
				k.group[f.key] = "{#"
			} else if k.group[f.key] == "" {
				k.group[f.key] = "[{#"
			}
			k.walk(inside, here)
		}
	}
}

// nearest returns the candidate that s probably means: the only one that extends s, with or without
// a plural s, by words or that s extends. Otherwise the smallest edit distance decides, up to a
// quarter of the length. It returns "" for no or several matches.
func nearest(s string, candidates []string) string {
	var begun []string
	singular := strings.TrimSuffix(s, "s")
	for _, c := range candidates {
		extends := strings.HasPrefix(c, s+"_") || strings.HasPrefix(c, singular+"_")
		if extends || strings.HasPrefix(s, c+"_") {
			begun = append(begun, c)
		}
	}
	if len(begun) == 1 {
		return begun[0]
	}
	best, found := (len(s)+2)/4+1, ""
	for _, c := range candidates {
		switch d := distance(s, c); {
		case d < best:
			best, found = d, c
		case d == best:
			found = "" // a tie
		}
	}
	return found
}

// distance returns the Levenshtein distance.
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
