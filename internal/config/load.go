package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Source says where to load a configuration from.
type Source struct {
	// File is the file named by --config, which must exist. If empty, the first existing file of
	// the default locations is used.
	File string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
}

// Loaded is a configuration with notes from loading it.
type Loaded struct {
	*Config
	File     string   // the file that was read, or ""
	Strayed  bool     // the file was found in the working directory, not named
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
		text, err := read(file)
		if err != nil {
			return nil, err
		}
		if err := l.readYAML(file, text); err != nil {
			return nil, err
		}
		l.File = file
		l.Strayed = file == localFile && s.File == "" && env.get("MCP_AUTHD_CONFIG") == ""
	}
	if err := env.addPackaged(file); err != nil {
		return nil, err
	}
	if l.Warnings, err = l.readEnv(env); err != nil {
		return nil, err
	}
	return l, l.readSecretFiles()
}

// maxFile limits the configuration file, in bytes.
const maxFile = 1 << 20

// read reads a configuration file, which may be a pipe.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("configuration file %s cannot be read: %w", file, errors.Unwrap(err))
	case len(text) > maxFile:
		return nil, fmt.Errorf("configuration file %s is longer than 1 MiB: name another with --config", file)
	}
	return text, nil
}

// localFile is the file name in the working directory.
const localFile = "mcp-authd.yaml"

// find returns the file to read, or "".
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
	for _, f := range []string{
		localFile, filepath.Join(user, "mcp-authd", "config.yaml"), "/etc/mcp-authd/config.yaml",
	} {
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
		if line := quotedBool(reflect.TypeFor[Config](), tree.Content[0]); line > 0 {
			return explain(name, text, fmt.Errorf("line %d: %s", line, textForBool))
		}
		note(l.origins, "", tree.Content[0], name)
	}
	return nil
}

// quotedBool returns the line of the first quoted value in place of true or false, or 0. The
// library accepts "yes" and "on" in quotes, but refuses "true".
func quotedBool(t reflect.Type, n *yaml.Node) (line int) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case t.Kind() == reflect.Bool && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return n.Line
	case listOfGroups(t) && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			line = cmp.Or(line, quotedBool(t.Elem(), item))
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		for f := range fields(t) {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == f.key {
					line = cmp.Or(line, quotedBool(f.Type, n.Content[i+1]))
				}
			}
		}
	}
	return line
}

// note records which keys a file sets, and where. It also records groups, because a group may be
// the whole value of a key, such as parameters.
func note(origins map[string]string, path string, n *yaml.Node, file string) {
	switch n.Kind {
	case yaml.AliasNode: // its values are at the anchor
		note(origins, path, n.Alias, file)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Tag == "!!merge" {
				noteMerged(origins, path, n.Content[i+1], file)
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 { // these override merged keys
			if n.Content[i].Tag == "!!merge" {
				continue
			}
			key := join(path, n.Content[i].Value)
			origins[key] = fmt.Sprintf("%s:%d", file, n.Content[i].Line)
			note(origins, key, n.Content[i+1], file)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			key := fmt.Sprintf("%s.%d", path, i)
			origins[key] = fmt.Sprintf("%s:%d", file, item.Line)
			note(origins, key, item, file)
		}
	}
}

// noteMerged records the keys that `<<:` merges from one group, or from a list of groups whose
// earlier ones win.
func noteMerged(origins map[string]string, path string, n *yaml.Node, file string) {
	if n.Kind != yaml.SequenceNode {
		note(origins, path, n, file)
		return
	}
	for _, group := range slices.Backward(n.Content) {
		note(origins, path, group, file)
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
