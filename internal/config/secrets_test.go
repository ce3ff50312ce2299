package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// secretKey is the path of keys to a secret. The key of a list ends with "[]".
type secretKey []string

// secretKeys returns the paths of all secrets in a type.
func secretKeys(t reflect.Type, above secretKey) (out []secretKey) {
	for f := range fields(t) {
		key, inside := f.key, f.Type
		if inside.Kind() == reflect.Slice {
			key, inside = key+"[]", inside.Elem()
		}
		here := append(append(secretKey{}, above...), key)
		switch {
		case inside == reflect.TypeFor[Secret]():
			out = append(out, here)
		case inside.Kind() == reflect.Struct:
			out = append(out, secretKeys(inside, here)...)
		}
	}
	return out
}

// in returns a document with the lines of text in the last group of the path. It replaces KEY with
// the last key.
func (k secretKey) in(text string) string {
	var b strings.Builder
	indent, item := "", ""
	last := len(k) - 1
	for _, key := range k[:last] {
		name, list := strings.CutSuffix(key, "[]")
		fmt.Fprintf(&b, "%s%s%s:\n", indent, item, name)
		if indent += strings.Repeat(" ", len(item)) + "  "; list {
			item = "- "
		} else {
			item = ""
		}
	}
	name, _ := strings.CutSuffix(k[last], "[]")
	for i, line := range strings.Split(strings.ReplaceAll(text, "KEY", name), "\n") {
		if i > 0 && item != "" {
			indent, item = indent+"  ", ""
		}
		if !strings.HasPrefix(line, "\t") {
			line = indent + item + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (k secretKey) String() string { return strings.Join(k, ".") }

// TestSecretsByType checks that no error and no printed configuration shows a secret, whatever is
// wrong with its line or a line beside it (EN-08).
func TestSecretsByType(t *testing.T) {
	keys := secretKeys(reflect.TypeFor[Config](), nil)
	if len(keys) < 15 {
		t.Fatalf("found %v", keys)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	for _, key := range keys {
		for _, text := range []string{
			"KEY: geheim7", "KEY: [geheim7]", "KEY: ['X: geheim7', 'A=geheim7']", "KEY:\n- geheim7",
			"KEY: geheim7\nKEY: geheim7", "KEY: [geheim7]\nKEY: [geheim7]", "KEY: geheim7\n\tx: a",
			"KEY: [geheim7]\n\tx: a",
			"KEY: geheim7\n\tKEY: geheim7", "KEY:\n- geheim7\n\t- geheim7", "KEY:\n- geheim7\n- {X: geheim7}",
			"KEY:\n- X: geheim7",
			"KEY: {a: geheim7}", "KEY: [[geheim7]]", "KEY: [{a: geheim7}]", "KEY: geheim7\nxyz: 1",
			"KEYx: geheim7", "KEYx: [geheim7]",
			"KEY: a: geheim7", "KEY: *geheim7", "KEY: &geheim7 [", "KEY: !geheim7 x", "KEY: !!int geheim7",
			"KEY: !!bool geheim7",
			"KEY: !!geheim7 {}", "KEY: @geheim7", "KEY: %geheim7", "KEY: `geheim7`", "KEY: \"\\ageheim7\\q\"",
			"KEY: \"geheim7",
			"KEY: 'geheim7", "KEY: |\n  aaa\n\tgeheim7", "KEY: |\n    aaa\n  issuer: geheim7\n b",
			"KEY: |\n  aaa\n listen: geheim7\nb: c",
			"KEY: >-\n  aaa\nlisten: geheim7\n  listen: geheim7", "KEY: |\n  geheim7\nKEY: |\n  geheim7",
			"KEY: |geheim7", "KEY: |\n  aaa\n geheim7",
			"KEY: 'aaa\n  issuer: geheim7\n  b' c", "KEY: \"aaa\n  issuer: geheim7\n  \\q\"",
			"KEY: aaa\n  issuer: geheim7",
			"KEY: [aaa,\n  issuer: geheim7, b: {]", "KEY:\n  issuer: geheim7", "KEY: {issuer: geheim7}",
			"KEY: !!binary geheim7",
			"KEY : geheim7\nKEY: b", "'KEY': geheim7\n\"KEY\": geheim7", "KEY: {\"issuer\":geheim7}",
		} {
			shown := shownOf(t, file, key.in(text))
			if strings.Contains(shown, "geheim7") {
				t.Errorf("EN-08 %s: %q shows the secret:\n%s", key, text, shown)
			}
		}
	}
}

// shownOf writes a configuration to a file, and returns everything that is reported about it.
func shownOf(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Source{File: file})
	if err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	l.Print(&out, true)
	fmt.Fprintln(&out, l.Warnings, l.Validate())
	return out.String()
}
