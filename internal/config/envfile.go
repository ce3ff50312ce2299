package config

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// Beside returns the path of a file that the packages have beside the configuration, below /etc as it is, and "" for
// another configuration than theirs.
func (l *Loaded) Beside(name string) string {
	etc, packaged := packagedIn(l.File)
	if !packaged {
		return ""
	}
	return filepath.Join(etc, filepath.FromSlash(name))
}

// packagedIn returns the directory /etc of a configuration that stands where the packages have it.
func packagedIn(file string) (etc string, packaged bool) {
	etc, packaged = strings.CutSuffix(filepath.ToSlash(file), "/mcp-authd/config.yaml")
	return filepath.FromSlash(etc), packaged && path.Base(etc) == "etc"
}

// addPackaged adds the variables that the unit of the packages gives the service, from /etc/default/mcp-authd with
// /etc/mcp-authd/config.yaml: without them a command of root would work on another database than the server. What is
// in the environment goes before. A user who may not read the file does without it, as the service itself, whose
// environment systemd has made of it.
func (e *environ) addPackaged(config string) error {
	etc, packaged := packagedIn(config)
	if !packaged {
		return nil
	}
	text, err := read(filepath.Join(etc, "default", "mcp-authd"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	}
	for name, value := range parseEnvFile(string(text)) {
		if _, there := e.values[name]; !there && strings.HasPrefix(name, prefix) {
			e.values[name] = value
		}
	}
	return nil
}

// parseEnvFile reads what systemd takes for an EnvironmentFile (systemd.exec(5)): NAME=value, comments that begin with
// # or ;, quotes, and a backslash that joins lines or takes the next character as it is. A line without = says nothing.
func parseEnvFile(text string) map[string]string {
	out := map[string]string{}
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return out
		}
		if text[0] == '#' || text[0] == ';' {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		end := strings.IndexAny(text, "=\n")
		if end < 0 {
			return out
		}
		name, is := strings.TrimSpace(text[:end]), text[end] == '='
		text = text[end+1:]
		if is {
			out[name], text = envValue(text)
		}
	}
}

// envValue reads a value to the end of its line, and returns what follows.
func envValue(text string) (value, rest string) {
	var out strings.Builder
	kept := 0                    // what of out is no space at the end
	quote, open := byte(0), true // open: a quote may begin here
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			if next := text[i]; next != '\n' {
				if quote == '"' && !strings.ContainsRune("\"\\`$", rune(next)) {
					out.WriteByte(c)
				}
				out.WriteByte(next)
				kept, open = out.Len(), quote != 0
			}
		case quote != 0 && c == quote:
			quote, open = 0, true
		case quote != 0:
			out.WriteByte(c)
			kept = out.Len()
		case c == '\n':
			return out.String()[:kept], text[i+1:]
		case open && (c == '"' || c == '\''):
			quote = c
		case c == ' ' || c == '\t' || c == '\r':
			if out.Len() > 0 && !open {
				out.WriteByte(c)
			}
		default:
			out.WriteByte(c)
			kept, open = out.Len(), false
		}
	}
	return out.String()[:kept], ""
}
