package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// served is an MCP server as resource list shows it.
type served struct {
	storage.Resource
	From  string     `json:"from"`
	Tools []toolNeed `json:"tools,omitempty"`
	// OverriddenBy is where another one of the same URI is from, which tokens are issued by.
	OverriddenBy string `json:"overridden_by,omitempty"`
}

// origin says where a resource is from, and whether another one overrides it.
func (l served) origin() string {
	if l.OverriddenBy == "" {
		return l.From
	}
	return l.From + ", overridden by: " + l.OverriddenBy
}

// toolNeed is a rule of the gateway about one tool, or those with a prefix.
type toolNeed struct {
	Name   string   `json:"name"`
	Scopes []string `json:"scopes,omitempty"` // all that a call needs
	Denied bool     `json:"denied,omitempty"`
}

func (t toolNeed) String() string {
	if t.Denied {
		return t.Name + ": denied"
	}
	return t.Name + ": " + strings.Join(t.Scopes, " ")
}

func (l served) tools() string {
	var all []string
	for _, t := range l.Tools {
		all = append(all, t.String())
	}
	return strings.Join(all, "; ")
}

// toolNeeds are the rules of the gateway for a resource of the configuration.
func toolNeeds(r *config.Resource) (out []toolNeed) {
	for _, t := range r.Tools {
		need := toolNeed{Name: t.Name, Denied: t.Deny}
		if !t.Deny {
			need.Scopes = append(r.Base(), t.Scopes...)
		}
		out = append(out, need)
	}
	return out
}

// servedFact is the name under which the database keeps what protect was last told to serve.
const servedFact = "protect"

// rememberServed has the database remember what the command line says: no file does.
func (a *app) rememberServed(ctx context.Context) error {
	own := served{
		Resource: a.config.StorageResources()[0], From: "protect, as last started",
		Tools: toolNeeds(&a.config.Resources[0]),
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	_, err = a.store.Remember(ctx, servedFact, text)
	return err
}

// listed returns all MCP servers with what their tools need, as far as this server decides it. A
// configured one goes before a stored one of the same URI: policy.NewCatalogue.
func (a *app) listed(ctx context.Context) ([]served, error) {
	out, err := a.configured(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := a.store.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	overrides := map[string]string{}
	for _, l := range out {
		overrides[policy.Canonical(l.URI)] = l.From
	}
	for _, r := range stored {
		out = append(out, served{Resource: r, From: "store", OverriddenBy: overrides[r.URI]})
	}
	return out, nil
}

// configured returns the MCP servers of the configuration, and that of protect, if any.
func (a *app) configured(ctx context.Context) ([]served, error) {
	out := []served{}
	for i, r := range a.config.StorageResources() {
		out = append(out, served{Resource: r, From: "configuration", Tools: toolNeeds(&a.config.Resources[i])})
	}
	text, err := a.store.Remember(ctx, servedFact, nil)
	if err != nil || len(text) == 0 {
		return out, err
	}
	var own served
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(out, func(l served) bool { return l.URI == own.URI }) {
		out = append(out, own)
	}
	return out, nil
}
