package config

import (
	"errors"
	"fmt"
	"github.com/mcp-authd/mcp-authd/internal/fieldtext"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"
)

const prefix = "MCP_AUTHD_"

// forCommands lists variables that are not settings, and their use by commands.
var forCommands = []struct{ name, meaning string }{
	{"CONFIG", "the configuration file, as `--config`"},
	{"REMOTE", "the issuer of the server that [carries commands out](api.md#from-the-command-line), as `--remote`"},
	{"TOKEN", "an access token for the API of that server"},
	{"TOKEN_FILE", "a file with it, which only its user may be able to read"},
	{"CLIENT_ID", "a client that gets its token by client credentials, or for a person who signs in"},
	{"CLIENT_SECRET", "its secret"},
	{"CLIENT_SECRET_FILE", "a file with it, which only its user may be able to read"},
}

// environ is the environment, with a record of the variables that were read.
type environ struct {
	values map[string]string
	known  map[string]bool
	files  map[string]string // files of secrets, by variable
}

func newEnviron(list []string) *environ {
	e := &environ{
		values: map[string]string{}, known: map[string]bool{}, files: map[string]string{},
	}
	for _, v := range forCommands {
		e.known[prefix+v.name] = true
	}
	for _, kv := range list {
		k, v, _ := strings.Cut(kv, "=")
		e.values[k] = v
	}
	return e
}

func (e *environ) get(name string) string { return e.values[name] }

func (e *environ) look(name string) (string, bool) {
	e.known[name] = true
	v, ok := e.values[name]
	return v, ok
}

// field is a field of a configuration struct with its YAML key.
type field struct {
	reflect.StructField
	key   string
	index int
}

func fields(t reflect.Type) iter.Seq[field] {
	return func(yield func(field) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if f.IsExported() && key != "" && !yield(field{f, key, i}) {
				return
			}
		}
	}
}

// listOfGroups reports whether the items of a list have keys.
func listOfGroups(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// readEnv overlays the environment. A variable is MCP_AUTHD_ and the key in capitals with
// underscores. Items of lists are numbered; plain lists are separated by commas or line ends. The
// variable with _FILE names a file that contains a secret.
func (l *Loaded) readEnv(e *environ) ([]string, error) {
	if err := l.overlay(e, reflect.ValueOf(l.Config).Elem(), ""); err != nil {
		return nil, err
	}
	l.secretFiles = e.files
	return e.unknown(), nil
}

func (l *Loaded) overlay(e *environ, v reflect.Value, path string) error {
	for f := range fields(v.Type()) {
		if f.Tag.Get("env") == "-" {
			continue
		}
		if err := l.overlayField(e, v.Field(f.index), join(path, f.key)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loaded) overlayField(e *environ, v reflect.Value, path string) error {
	name := variable(path)
	switch {
	case v.Kind() == reflect.Struct:
		return l.overlay(e, v, path)
	case listOfGroups(v.Type()):
		return l.overlayItems(e, v, path, name)
	case v.Kind() == reflect.Slice:
		text, ok, err := e.lookSecret(name, v.Type().Elem() == reflect.TypeFor[Secret]())
		if err != nil || !ok {
			return err
		}
		l.origins[path] = "$" + name
		if quoted(strings.TrimSpace(text)) { // the first and last item would contain a quote
			return fmt.Errorf("$%s: %s", name, inQuotes)
		}
		if err := setList(v, text); err != nil {
			return fmt.Errorf("$%s: %w", name, err)
		}
		return nil
	}
	text, ok, err := e.lookSecret(name, v.Type() == reflect.TypeFor[Secret]())
	if err != nil || !ok {
		return err
	}
	l.origins[path] = "$" + name
	if err := set(v, text); err != nil {
		return fmt.Errorf("$%s: %w", name, err)
	}
	return nil
}

// variable returns the environment variable of a path.
func variable(path string) string {
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// overlayItems sets existing items, and appends items while the environment has variables for the
// next number.
func (l *Loaded) overlayItems(e *environ, v reflect.Value, path, name string) error {
	for i := 0; ; i++ {
		if i >= v.Len() {
			if !e.hasPrefix(fmt.Sprintf("%s_%d_", name, i)) {
				return nil
			}
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		if err := l.overlay(e, v.Index(i), fmt.Sprintf("%s.%d", path, i)); err != nil {
			return err
		}
	}
}

func (e *environ) hasPrefix(p string) bool {
	for k := range e.values {
		if strings.HasPrefix(k, p) {
			return true
		}
	}
	return false
}

func (e *environ) lookSecret(name string, secret bool) (string, bool, error) {
	text, ok := e.look(name)
	if !secret {
		return text, ok, nil
	}
	file, fromFile := e.look(name + "_FILE")
	fromFile = fromFile && file != ""
	switch {
	case ok && fromFile:
		return "", false, fmt.Errorf("$%s and $%s_FILE are both set; set one", name, name)
	case ok || !fromFile:
		return text, ok, nil
	}
	if why := misspelling("_file", file); why != "" {
		return "", false, fmt.Errorf("$%s_FILE: %s", name, why)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", false, fmt.Errorf("$%s_FILE: %w", name, err)
	}
	e.files["$"+name+"_FILE"] = file
	return strings.TrimRight(string(b), "\r\n"), true, nil
}

func setList(v reflect.Value, text string) error {
	v.SetZero()
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := set(e, item); err != nil {
			return err
		}
		v.Set(reflect.Append(v, e))
	}
	return nil
}

func set(v reflect.Value, text string) error {
	if v.Kind() == reflect.Map {
		return setMap(v, text)
	}
	err := fieldtext.Set(v, text)
	if errors.Is(err, fieldtext.ErrKind) {
		return errors.New("cannot be set from the environment")
	}
	return err
}

// setMap parses name=value pairs, separated by commas or line ends.
func setMap(v reflect.Value, text string) error {
	out := map[string]string{}
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		if !ok {
			return fmt.Errorf("%q is not name=value", item)
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	v.Set(reflect.ValueOf(out))
	return nil
}

// unknown returns a warning for each unknown variable with our prefix. Kubernetes creates variables
// from the name of a Service. Those of a Service called mcp-authd are ignored.
func (e *environ) unknown() []string {
	var out []string
	known := make([]string, 0, len(e.known))
	for k := range e.known {
		known = append(known, strings.TrimPrefix(k, prefix))
	}
	for k := range e.values {
		rest, ours := strings.CutPrefix(k, prefix)
		if !ours || e.known[k] || rest == "PORT" || strings.HasPrefix(rest, "PORT_") ||
			strings.HasPrefix(rest, "SERVICE_") {
			continue
		}
		w := fmt.Sprintf("environment variable %s is not known", k)
		if near := nearest(rest, known); near != "" {
			w += "; did you mean " + prefix + near + "?"
		}
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}
