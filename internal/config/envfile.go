package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Beside returns the path of a file that the packages install next to the configuration, under the
// same /etc. It returns "" if the configuration is not the packaged one.
func (l *Loaded) Beside(name string) string {
	etc, packaged := packagedIn(l.File)
	if !packaged {
		return ""
	}
	return filepath.Join(etc, filepath.FromSlash(name))
}

// packagedIn returns the /etc directory of a configuration at the packaged path.
func packagedIn(file string) (etc string, packaged bool) {
	etc, packaged = strings.CutSuffix(filepath.ToSlash(file), "/mcp-authd/config.yaml")
	return filepath.FromSlash(etc), packaged && path.Base(etc) == "etc"
}

// addPackaged adds the variables that the packaged unit gives the service: those in
// /etc/default/mcp-authd for /etc/mcp-authd/config.yaml. Without them, a command of root would use
// another database than the server. The environment takes precedence. A user who may not read the
// file does without it. So does the service itself, because systemd has already set its environment
// from it.
func (e *environ) addPackaged(config string) error {
	etc, packaged := packagedIn(config)
	if !packaged {
		return nil
	}
	file := filepath.Join(etc, "default", "mcp-authd")
	text, err := read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	case !utf8.Valid(text), bytes.IndexByte(text, 0) >= 0:
		return fmt.Errorf("%s is not UTF-8 text, so systemd gives the service none of its variables: "+
			"write the file again", file)
	}
	for name, value := range parseEnvFile(string(text)) {
		if _, there := e.values[name]; !there && strings.HasPrefix(name, prefix) {
			e.values[name] = value
		}
	}
	return nil
}

// newline holds the characters that end a line for systemd.
const newline = "\n\r"

// parseEnvFile parses an EnvironmentFile as systemd does (systemd.exec(5)). It has NAME=value
// lines, comments that start with # or ;, quotes, and backslashes that join lines or escape the
// next character. A line without = or with an invalid name is ignored. A backslash at the end of a
// comment joins nothing, as since systemd 254.
func parseEnvFile(text string) map[string]string {
	out := map[string]string{}
	for {
		text = strings.TrimLeft(text, " \t"+newline)
		if text == "" {
			return out
		}
		ends := newline
		if text[0] != '#' && text[0] != ';' {
			ends += "="
		}
		end := strings.IndexAny(text[1:], ends) + 1
		if end == 0 {
			return out
		}
		name, is := strings.TrimRight(text[:end], " \t"), text[end] == '='
		text = text[end+1:]
		if is {
			var value string
			if value, text = envValue(text); envName.MatchString(name) {
				out[name] = value
			}
		}
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envValue parses a value up to the end of its line, and returns the rest of the text.
func envValue(text string) (value, rest string) {
	var out strings.Builder
	kept := 0                             // length of out without trailing space
	const open, bare = byte(0), byte('=') // open: a quote may start here
	for in, i := open, 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && in != '\'':
			if in == open {
				in = bare
			}
			if i++; i < len(text) {
				envEscape(&out, in, text[i])
			}
			kept = out.Len()
		case in == '\'' || in == '"':
			if c == in {
				in = open
				continue
			}
			out.WriteByte(c)
			kept = out.Len()
		case strings.IndexByte(newline, c) >= 0:
			return out.String()[:kept], text[i+1:]
		case in == open && (c == '\'' || c == '"'):
			in = c
		case c == ' ' || c == '\t':
			if in == bare {
				out.WriteByte(c)
			}
		default:
			in = bare
			out.WriteByte(c)
			kept = out.Len()
		}
	}
	return out.String()[:kept], ""
}

// envEscape writes the character that a backslash before next stands for, inside or outside quotes.
func envEscape(out *strings.Builder, in, next byte) {
	switch {
	case in != '"':
		if strings.IndexByte(newline, next) < 0 {
			out.WriteByte(next)
		}
	case strings.IndexByte("\"\\`$", next) >= 0:
		out.WriteByte(next)
	case next != '\n':
		out.WriteByte('\\')
		out.WriteByte(next)
	}
}
