package config

import (
	_ "embed"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Key is one key of the configuration.
type Key struct {
	Path        string   // from the root, with [] after each list of groups
	Type        string   // in words: text, number, list of texts; group if it contains other keys
	Environment string   // the variable, with N for the number of an item; "" for none
	Secret      bool     // the variable may also end in _FILE
	Default     string   // in Markdown; "" for none
	Meaning     string   // in Markdown, with links relative to docs/
	Values      []string // the permitted values; empty for any
}

// said is the entry of a key in keys.yaml.
type said struct {
	Is   string   `yaml:"is"`
	Else string   `yaml:"else"`
	Of   []string `yaml:"of"`
}

//go:embed keys.yaml
var keysFile []byte

// allSaid returns keys.yaml by key.
var allSaid = sync.OnceValue(func() map[string]said {
	var out map[string]said
	if err := yaml.Unmarshal(keysFile, &out); err != nil {
		panic(err) // a test also parses it
	}
	return out
})

// group and list are the types of keys that contain other keys.
const (
	group = "group"
	list  = "list"
)

// Reference returns all keys in the order of the structs. Groups and lists of groups precede their
// contents.
func Reference() []Key {
	var out []Key
	walkKeys(reflect.ValueOf(Default(func(string) string { return "" })).Elem(), "", true, &out)
	return out
}

func walkKeys(v reflect.Value, path string, inEnvironment bool, out *[]Key) {
	for f := range fields(v.Type()) {
		x, at := v.Field(f.index), join(path, f.key)
		inEnvironment := inEnvironment && f.Tag.Get("env") != "-"
		switch {
		case x.Kind() == reflect.Struct:
			*out = append(*out, Key{Path: at, Type: group, Meaning: allSaid()[at].Is})
			walkKeys(x, at, inEnvironment, out)
		case listOfGroups(x.Type()):
			*out = append(*out, Key{Path: at + "[]", Type: list, Meaning: allSaid()[at+"[]"].Is})
			walkKeys(reflect.Zero(x.Type().Elem()), at+"[]", inEnvironment, out)
		default:
			*out = append(*out, keyOf(x, at, inEnvironment))
		}
	}
}

func keyOf(v reflect.Value, path string, inEnvironment bool) Key {
	about := saidOf(path)
	k := Key{Path: path, Type: typeWords(v.Type()), Meaning: about.Is, Values: about.Of, Default: about.Else}
	k.Secret = v.Type() == reflect.TypeFor[Secret]() || v.Type() == reflect.TypeFor[[]Secret]()
	if inEnvironment {
		k.Environment = variable(strings.ReplaceAll(path, "[]", ".N"))
	}
	if k.Default == "" && !v.IsZero() || v.Kind() == reflect.Bool {
		k.Default = "`" + brief(show(v)) + "`"
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 && about.Else == "" {
		k.Default = ""
	}
	return k
}

// zeros matches the zero parts at the end of a duration.
var zeros = regexp.MustCompile(`([hm])(0m)?0s$`)

// brief shortens a duration as people write it: 15m instead of 15m0s.
func brief(value string) string { return zeros.ReplaceAllString(value, "$1") }

// saidOf returns the entry of a key. For a file with a secret, it derives the entry.
func saidOf(path string) said {
	about, ok := allSaid()[path]
	if secret, isFile := strings.CutSuffix(path, "_file"); !ok && isFile && allSaid()[secret].Is != "" {
		about.Is = "a file with `" + secret[strings.LastIndexByte(secret, '.')+1:] + "`"
	}
	return about
}

func typeWords(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration](), t == reflect.TypeFor[storage.Age]():
		return "duration"
	case t == reflect.TypeFor[Secret]():
		return "secret"
	case t.Kind() == reflect.Slice:
		return "list of " + typeWords(t.Elem()) + "s"
	case t.Kind() == reflect.Map:
		return "names with texts"
	case t.Kind() == reflect.Bool:
		return "`true` or `false`"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return "number"
	}
	return "text"
}

// elsewhere lists variables of other programs that the server reads.
var elsewhere = []struct{ name, meaning string }{
	{"STATE_DIRECTORY", "the data directory, as systemd names it; goes before `XDG_DATA_HOME`"},
	{"CREDENTIALS_DIRECTORY", "directory of the systemd credential `secret_key`"},
	{"XDG_CONFIG_HOME", "directory of `mcp-authd/config.yaml`; without it `~/.config`"},
	{"XDG_DATA_HOME", "parent of the data directory `mcp-authd`; without it `~/.local/share`"},
	{"GOGC", "how rarely garbage is collected; without it the server sets a value"},
	{"GOMEMLIMIT", "memory limit of the Go runtime; without it the server sets a value"},
	{"OTEL_SDK_DISABLED", "`true` turns [traces](traces.md) off, regardless of the configuration"},
	{"OTEL_TRACES_SAMPLER", "sampling of traces, if `traces.sample` is not set"},
	{"KUBERNETES_SERVICE_HOST", "marks a pod: wrong modes of mounted secrets are warnings, not errors"},
}
