package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// trying is how long protect waits for a program, which npx may have to download first.
const trying = time.Minute

// try checks that the MCP server responds, before anything is created or announced, and names it. A
// failure that may be temporary is returned as away.
func (p *protection) try(ctx context.Context, a *app) (away, err error) {
	r := &a.Config.Resources[0]
	server, err := a.Parts().Backend(r, gateway.Config{})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, trying)
	defer cancel()
	name, err := server.Try(ctx)
	switch {
	case errors.Is(err, gateway.ErrAway):
		away = err
	case err != nil:
		return nil, err
	}
	if p.name == "" {
		r.Name = p.called(name, r)
	}
	return away, nil
}

const maxName = 80 // bytes

// called returns the name shown to users: the MCP server's own name, or else its program's name.
func (p *protection) called(name string, r *config.Resource) string {
	name = strings.TrimSpace(label.Printable(name))
	if name == "" && p.command {
		name = packageName(p.upstream)
	}
	if name == "" || len(name) > maxName {
		return r.Name
	}
	return name
}

// packageName returns the program of a command: for npx and similar, the package.
func packageName(command []string) string {
	program := path.Base(command[0])
	if slices.Contains([]string{"npx", "bunx", "uvx", "pnpx", "pipx", "pnpm", "yarn"}, program) {
		for _, arg := range command[1:] {
			if !strings.HasPrefix(arg, "-") && !slices.Contains([]string{"run", "dlx", "exec"}, arg) {
				return arg
			}
		}
	}
	return program
}

// noURL reports whether the argument of protect is the start of a command.
func noURL(args []string) bool {
	if len(args) == 0 {
		return false
	}
	u, err := url.Parse(args[0])
	return err != nil || u.Scheme != "http" && u.Scheme != "https"
}

func explainNoURL(args []string, more string) error {
	return fmt.Errorf("%q is not an http or https URL; put -- before a command: mcp-authd protect [flags] -- %s%s",
		args[0], strings.Join(args, " "), more)
}

// policy prints which scopes calls need.
func (p *protection) policy(out io.Writer, r *config.Resource) {
	title := "policy"
	line := func(what string, scopes []string) {
		fmt.Fprintf(out, "  %-10s %s needs %s\n", title, what, strings.Join(scopes, " "))
		title = ""
	}
	line("everything", r.Base())
	for _, t := range r.Tools {
		line("calling "+label.Printable(t.Name), oauth.Scopes(r.Base()).Union(t.Scopes))
	}
}

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
			if installation.Lookup(environ, v) == "" {
				return nil, fmt.Errorf(
					"--env %s: there is no such variable in this environment; set it, or write NAME=value or @FILE", v,
				)
			}
			v += "=" + installation.Lookup(environ, v)
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
