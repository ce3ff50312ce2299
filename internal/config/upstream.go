package config

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/condition"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ToolRule says which permissions a call of a tool needs.
type ToolRule struct {
	Name   string   `yaml:"name"` // exact, or a prefix that ends in "*"
	Scopes []string `yaml:"scopes"`
	Deny   bool     `yaml:"deny"`   // no caller may call it
	Direct bool     `yaml:"direct"` // the application may call it, but none of its sub-agents
	// Clearance says who must approve each call.
	Clearance ToolClearance `yaml:"clearance"`
}

// ToolClearance says who must approve each call of a tool before it runs.
type ToolClearance struct {
	By        string   `yaml:"by"`        // person, other
	Approvers []string `yaml:"approvers"` // names of accounts, for other; empty for administrators
	ACR       string   `yaml:"acr"`       // the authentication context class of the approver, or a stronger one
	MaxAge    Duration `yaml:"max_age"`   // the maximum age of the approver's authentication
	When      string   `yaml:"when"`      // an expression over arguments; "" for every call
}

// Set reports whether anything is configured.
func (c *ToolClearance) Set() bool {
	return c.By != "" || len(c.Approvers) > 0 || c.ACR != "" || c.MaxAge != 0 || c.When != ""
}

func (c *ToolClearance) validate(add func(string, string, ...any), key string) {
	if !c.Set() {
		return
	}
	if c.By != oauth.ClearanceByPerson && c.By != oauth.ClearanceByOther {
		add(key+".by", "%q is not one of person (for whom the call is made), other", c.By)
	}
	if len(c.Approvers) > 0 && c.By != oauth.ClearanceByOther {
		add(key+".approvers", "are for by: other")
	}
	if len(c.Approvers) > maxApprovers {
		add(key+".approvers", "are more than %d", maxApprovers)
	}
	for i, name := range c.Approvers {
		if name == "" || strings.ContainsAny(name, " \t\n") {
			add(fmt.Sprintf("%s.approvers[%d]", key, i), "%q is not the name of an account", name)
		}
	}
	if c.ACR != "" && !slices.Contains(oauth.ACRs(), c.ACR) {
		add(key+".acr", "%q is not one of %s", c.ACR, strings.Join(oauth.ACRs(), ", "))
	}
	checkBetween(add, key+".max_age", c.MaxAge, 0, 24*time.Hour)
	if time.Duration(c.MaxAge)%time.Second != 0 {
		add(key+".max_age", "%s is not in whole seconds", c.MaxAge)
	}
	if c.When != "" {
		if _, err := condition.CompileArguments(c.When); err != nil {
			add(key+".when", "%v", err)
		}
	}
}

// maxApprovers limits how many users can approve calls of a tool.
const maxApprovers = 32

// Upstream says how the gateway reaches an MCP server: by URL, or by a Command that speaks MCP on
// its standard input and output. Without either, the resource has no gateway.
type Upstream struct {
	URL     string   `yaml:"url"`
	Command []string `yaml:"command"`

	Headers []Secret         `yaml:"headers"` // "Name: value", sent with each request
	Cookies []string         `yaml:"cookies"` // names of cookies that are forwarded; none by default
	Timeout Duration         `yaml:"timeout"` // until the response starts
	Health  string           `yaml:"health"`  // a path that responds with 2xx
	ID      UpstreamIdentity `yaml:"identity"`
	Broker  UpstreamBroker   `yaml:"broker"`

	Dir          string   `yaml:"dir"`
	User         string   `yaml:"user"`     // the user of the process: a name, or UID:GID
	Sandbox      Sandbox  `yaml:"sandbox"`  // its limits
	Env          []Secret `yaml:"env"`      // "NAME=value"
	PassEnv      []string `yaml:"pass_env"` // names of variables of this process
	Process      string   `yaml:"process"`  // per_principal, shared
	Idle         Duration `yaml:"idle"`
	MaxProcesses int      `yaml:"max_processes"`
	MaxPerCaller int      `yaml:"max_per_principal"`

	Sessions       string   `yaml:"sessions"` // person, client
	Denials        string   `yaml:"denials"`  // plain, structured
	Lists          string   `yaml:"lists"`    // all, usable
	Origins        []string `yaml:"origins"`  // web origins that may call
	MaxBody        int      `yaml:"max_body"`
	CallsPerSecond int      `yaml:"calls_per_second"` // per caller; negative for no limit
}

// UpstreamIdentity names the headers that identify the caller.
type UpstreamIdentity struct {
	Subject  string `yaml:"subject"`
	Client   string `yaml:"client"`
	Scope    string `yaml:"scope"`
	Actor    string `yaml:"actor"`
	Token    string `yaml:"token"`
	Audience string `yaml:"audience"`
}

// UpstreamBroker lets the MCP server get the caller's token of a provider.
type UpstreamBroker struct {
	Provider     string   `yaml:"provider"` // ID in thirdparty
	Scopes       []string `yaml:"scopes"`
	ClientID     string   `yaml:"client_id"` // a client in clients that names the resource
	ClientSecret Secret   `yaml:"client_secret"`
}

// Set reports whether the gateway serves the resource.
func (u *Upstream) Set() bool { return u.URL != "" || len(u.Command) > 0 }

// Shared reports whether all callers use one process.
func (u *Upstream) Shared() bool { return u.Process == "shared" }

// PerClient reports whether a session belongs to a user together with one application.
func (u *Upstream) PerClient() bool { return u.Sessions == "client" }

// Header returns Headers, parsed. Validate has checked them.
func (u *Upstream) Header() http.Header {
	return header(u.Headers)
}

// Environment returns Env unmasked.
func (u *Upstream) Environment() []string {
	var out []string
	for _, e := range u.Env {
		out = append(out, string(e))
	}
	return out
}

// HoldsTools reports whether tools_accept holds back changed tools.
func HoldsTools(accept string) bool { return accept == "hold" || accept == "hold_new" }

// Base returns the scopes that every call of the MCP server needs (storage.ScopeText.EveryCall).
func (r *Resource) Base() []string { return policy.EveryCall(storage.Resource{Scopes: r.Scopes}) }

// First returns the scopes that clients request at the first sign-in (storage.ScopeText.Default).
func (r *Resource) First() []string { return policy.DefaultScopes(storage.Resource{Scopes: r.Scopes}) }

func (r *Resource) validateUpstream(add func(string, string, ...any), key string) {
	r.validateTools(add, key)
	u, key := &r.Upstream, key+".upstream"
	if !u.Set() {
		if len(r.Tools) > 0 || r.ToolsAccept != "" {
			add(key, "is missing: tools are checked where this server is the gateway to the MCP server")
		}
		return
	}
	if u.URL != "" && len(u.Command) > 0 {
		add(key, "set url or command, not both")
	}
	u.validateURL(add, key+".url")
	if !slices.Contains([]string{"", "per_principal", "shared"}, u.Process) {
		add(key+".process", "%q is not one of per_principal, shared", u.Process)
	}
	if !slices.Contains([]string{"", "person", "client"}, u.Sessions) {
		add(key+".sessions", "%q is not one of person, client", u.Sessions)
	}
	if !slices.Contains([]string{"", "plain", "structured"}, u.Denials) {
		add(key+".denials", "%q is not one of plain, structured", u.Denials)
	}
	if !slices.Contains([]string{"", "all", "usable"}, u.Lists) {
		add(key+".lists", "%q is not one of all, usable", u.Lists)
	}
	for i, h := range u.Headers {
		if wrongHeader(h) {
			add(fmt.Sprintf("%s.headers[%d]", key, i), "is not of the form Name: value")
		}
	}
	for i, e := range u.Env {
		if name, _, ok := strings.Cut(string(e), "="); !ok || name == "" {
			add(fmt.Sprintf("%s.env[%d]", key, i), "is not of the form NAME=value")
		}
	}
	if u.User != "" && len(u.Command) == 0 {
		add(key+".user", "is for a command")
	}
	u.Sandbox.validate(add, key+".sandbox", len(u.Command) > 0)
	switch b := u.Broker; {
	case b.Provider == "" && (b.ClientID != "" || b.ClientSecret != "" || len(b.Scopes) > 0):
		add(key+".broker.provider", "is missing")
	case b.Provider != "" && (b.ClientID == "" || b.ClientSecret == ""):
		add(key+".broker", "needs client_id and client_secret of a client in clients that names the resource")
	case b.Provider != "" && u.URL == "":
		add(key+".broker", "is for an MCP server with a url: a program has no place for a token that changes")
	}
	checkBetween(add, key+".timeout", u.Timeout, 0, 24*time.Hour)
	checkBetween(add, key+".idle", u.Idle, 0, 30*24*time.Hour)
	for _, n := range []struct {
		name  string
		value int
	}{{"max_processes", u.MaxProcesses}, {"max_per_principal", u.MaxPerCaller}, {"max_body", u.MaxBody}} {
		if n.value < 0 {
			add(key+"."+n.name, "%d is negative", n.value)
		}
	}
}

// validateURL checks the URL. Its messages repeat no URL that may contain a password (SP-28).
func (u *Upstream) validateURL(add func(string, string, ...any), key string) {
	target, err := url.Parse(u.URL)
	switch {
	case u.URL == "":
	case strings.Contains(u.URL, "@") && (err != nil || target.User != nil || target.Host == ""):
		add(key, "has a name or password in it: send them in headers, Authorization: Basic ...")
	case err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https":
		add(key, "%q is not a URL such as http://127.0.0.1:3000/mcp", u.URL)
	}
}

func (r *Resource) validateTools(add func(string, string, ...any), key string) {
	known := func(scope string) bool {
		return slices.ContainsFunc(r.Scopes, func(s storage.ScopeText) bool { return s.Name == scope })
	}
	if !slices.Contains([]string{"", "report", "hold", "hold_new", "off"}, r.ToolsAccept) {
		add(key+".tools_accept", "%q is not one of report, hold, hold_new, off", r.ToolsAccept)
	}
	named := map[string]bool{}
	for i, t := range r.Tools {
		key := fmt.Sprintf("%s.tools[%d]", key, i)
		switch {
		case t.Name == "":
			add(key+".name", "is missing")
		case named[t.Name]: // otherwise only the last rule would apply
			add(key+".name", "%q is listed twice: name all of its scopes at once", t.Name)
		case strings.Contains(strings.TrimSuffix(t.Name, "*"), "*"):
			add(key+".name", "%q: a * is allowed only at the end", t.Name)
		case t.Deny == (len(t.Scopes) > 0 || t.Direct || t.Clearance.Set()):
			add(key, "set scopes, or deny: true, or direct: true, or a clearance")
		}
		t.Clearance.validate(add, key+".clearance")
		named[t.Name] = true
		for _, s := range t.Scopes {
			if !oauth.ValidScope(s) || !known(s) {
				add(key+".scopes",
					"%q is not a scope of this resource, which has %s: correct it, or add it to the scopes of the resource",
					s, scopesOf(r.Scopes))
			}
		}
	}
}
