package config

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// Value is one setting in printed form.
type Value struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Values returns every setting with its origin. Secrets are masked.
func (c *Config) Values() []Value {
	var out []Value
	c.walk(reflect.ValueOf(c).Elem(), "", &out)
	return out
}

func (c *Config) walk(v reflect.Value, path string, out *[]Value) {
	for f := range fields(v.Type()) {
		c.walkField(v.Field(f.index), join(path, f.key), out)
	}
}

func (c *Config) walkField(v reflect.Value, path string, out *[]Value) {
	switch {
	case v.Kind() == reflect.Struct:
		c.walk(v, path, out)
		return
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			c.walkField(v.Index(i), fmt.Sprintf("%s.%d", path, i), out)
		}
		return
	}
	*out = append(*out, Value{path, show(v), c.origin(path)})
}

// origin returns the origin of a setting. A variable or a flag may set it as part of a list. A file
// records each key that it sets.
func (c *Config) origin(path string) string {
	if o, ok := c.origins[path]; ok {
		return o
	}
	for i := strings.LastIndexByte(path, '.'); i >= 0; i = strings.LastIndexByte(path, '.') {
		path = path[:i]
		if o, ok := c.origins[path]; ok && (strings.HasPrefix(o, "$") || strings.HasPrefix(o, "--")) {
			return o
		}
	}
	return "default"
}

// where returns the end of a message about a key: the origin of its value, or of the list item that
// lacks it. It is empty for a default.
func (c *Config) where(key string) string {
	path := strings.NewReplacer("[", ".", "]", "").Replace(key)
	o := c.origin(path)
	for o == "default" {
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return ""
		}
		if path = path[:i]; isNumber(path[strings.LastIndexByte(path, '.')+1:]) {
			o = c.origin(path)
		}
	}
	return " (" + o + ")"
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Secret:
		return x.masked()
	case []Secret:
		return "(" + label.Count(len(x), "secret", "secrets") + ")"
	case []string:
		return "[" + strings.Join(x, ", ") + "]"
	case map[string]string:
		var items []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			items = append(items, k+": "+x[k])
		}
		return "{" + strings.Join(items, ", ") + "}"
	default:
		return fmt.Sprint(x)
	}
}

func (s Secret) masked() string {
	if s == "" {
		return ""
	}
	return "(set)"
}

// String masks the secret, in case a configuration is printed by mistake.
func (s Secret) String() string { return s.masked() }

// Origin returns the source of a key's value: a line of the file, a variable, a flag, or "default".
func (c *Config) Origin(key string) string { return c.origin(key) }

// IsDefault reports whether a key was not set.
func (c *Config) IsDefault(key string) bool { return c.origin(key) == "default" }

// SetOrigin records that a flag has set a key.
func (c *Config) SetOrigin(key, origin string) { c.origins[key] = origin }

// Print writes every setting, one per line.
func (c *Config) Print(w io.Writer, withOrigin bool) {
	for _, v := range c.Values() {
		if withOrigin {
			fmt.Fprintf(w, "%-36s %-40s # %s\n", v.Key, v.Value, v.Origin)
			continue
		}
		fmt.Fprintf(w, "%-36s %s\n", v.Key, v.Value)
	}
}

// HoldsSecrets reports whether the configuration file itself contains a secret.
func (c *Config) HoldsSecrets() bool {
	return c.secretInside(reflect.ValueOf(c).Elem(), "")
}

func (c *Config) secretInside(v reflect.Value, path string) bool {
	o := c.origin(path)
	inFile := o != "default" && !strings.HasPrefix(o, "$") && !strings.HasSuffix(o, "_file")
	switch x := v.Interface().(type) {
	case Secret:
		return x != "" && inFile && !x.plainURL()
	case []Secret:
		return len(x) > 0 && inFile
	}
	switch {
	case v.Kind() == reflect.Struct:
		for f := range fields(v.Type()) {
			if c.secretInside(v.Field(f.index), join(path, f.key)) {
				return true
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			if c.secretInside(v.Index(i), fmt.Sprintf("%s.%d", path, i)) {
				return true
			}
		}
	}
	return false
}

// plainURL reports whether a secret is a URL without a password.
func (s Secret) plainURL() bool {
	u, err := url.Parse(string(s))
	if err != nil || u.Scheme == "" || u.Host == "" {
		return false
	}
	_, password := u.User.Password()
	return !password && !u.Query().Has("password")
}
