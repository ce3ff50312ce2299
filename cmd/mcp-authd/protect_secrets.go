package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
)

// fromFiles replaces "@FILE" among the values of a flag with the lines of the file, because every
// user of the machine can read command lines.
func fromFiles(flag string, values []string) ([]string, error) {
	var out []string
	for _, v := range values {
		path, isFile := strings.CutPrefix(v, "@")
		if !isFile {
			out = append(out, v)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s @FILE: %w", flag, err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, line)
			}
		}
	}
	return out, nil
}

// fromEnvironment adds the values from this environment to names without a value.
func fromEnvironment(values, environ []string) ([]string, error) {
	var out []string
	for _, v := range values {
		if !strings.Contains(v, "=") {
			if lookup(environ, v) == "" {
				return nil, fmt.Errorf(
					"--env %s: there is no such variable in this environment; set it, or write NAME=value or @FILE", v,
				)
			}
			v += "=" + lookup(environ, v)
		}
		out = append(out, v)
	}
	return out, nil
}

// secretName matches words that are usual in names of secrets.
var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|passw|credential|cookie|session`)

// exposed returns warnings about secrets on the command line.
func (p *protection) exposed() (out []string) {
	for _, f := range []struct {
		flag, separator, advice string
		values                  []string
	}{
		{"--header", ":", `put "Name: value" into a file that only you can read, and give --header @FILE`, p.headers},
		{"--env", "=", "put it into the environment and give its name alone, --env NAME, or into a file, --env @FILE",
			p.env},
	} {
		for _, v := range f.values {
			name, value, ok := strings.Cut(v, f.separator)
			if ok && strings.TrimSpace(value) != "" && !strings.HasPrefix(v, "@") && secretName.MatchString(name) {
				out = append(out,
					fmt.Sprintf(
						"the value of %s %s is in the list of processes, for every user of this machine to read: %s",
						f.flag, strings.TrimSpace(name), f.advice,
					))
			}
		}
	}
	return out
}

// secrets adds headers and environment to the configuration of the upstream.
func (p *protection) secrets(u *config.Upstream, environ []string) error {
	headers, err := fromFiles("--header", p.headers)
	if err != nil {
		return err
	}
	env, err := fromFiles("--env", p.env)
	if err != nil {
		return err
	}
	if env, err = fromEnvironment(env, environ); err != nil {
		return err
	}
	for _, h := range headers {
		u.Headers = append(u.Headers, config.Secret(h))
	}
	for _, e := range env {
		u.Env = append(u.Env, config.Secret(e))
	}
	return nil
}
