package admin

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The states of a tool.
const (
	ToolAccepted = "accepted"
	ToolChanged  = "changed"
	ToolNew      = "new"
)

// WatchedTool is a tool of an MCP server behind the gateway, as the server describes it.
type WatchedTool struct {
	Name  string `json:"name"`
	State string `json:"state" jsonschema:"accepted; changed: described otherwise since; or new: not accepted yet"`
	Held  bool   `json:"held,omitempty" jsonschema:"it is in no list, and calls are refused, until it is accepted"`
	// AcceptedAt is when its definition was accepted, by an administrator or because it was the
	// first.
	AcceptedAt time.Time `json:"accepted_at,omitzero"`
	ByOperator bool      `json:"by_operator,omitempty" jsonschema:"an administrator accepted it; otherwise it was the first definition seen"`
	AcceptedBy string    `json:"accepted_by,omitempty" jsonschema:"the user or program that accepted it; operator: the command line on the server"`
	Accepted   string    `json:"accepted_digest,omitempty" jsonschema:"digest of the accepted definition"`
	OfferedAt  time.Time `json:"offered_at,omitzero" jsonschema:"when the new definition was first seen"`
	Offered    string    `json:"offered_digest,omitempty" jsonschema:"digest of the new definition, to accept it with"`
}

// ToolDifference shows how the definition of a tool has changed.
type ToolDifference struct {
	WatchedTool
	// Lines holds the lines of both definitions as JSON. "-" starts a line of the accepted
	// definition only, "+" a line of the offered one only.
	Lines []string `json:"lines" jsonschema:"of both definitions; - begins a line of the accepted one alone, + of the offered one alone"`
}

// ToolOf names a tool.
type ToolOf struct {
	URI  string `json:"uri" jsonschema:"the URL of the MCP server"`
	Name string `json:"name" jsonschema:"name of the tool"`
}

// ToolAcceptance names the definition of a tool to accept.
type ToolAcceptance struct {
	URI    string `json:"uri" jsonschema:"the URL of the MCP server"`
	Name   string `json:"name" jsonschema:"name of the tool"`
	Digest string `json:"digest" jsonschema:"digest of the definition: the new one, or the accepted one to keep it"`
}

// Operations on the tool definitions of MCP servers.
var (
	ResourceTools = define(Spec{
		Name: "resource tools", Method: "GET", Path: "/resources/{uri}/tools", Roles: reading,
		Summary: "List the tools of an MCP server behind the gateway, and changed definitions",
		Details: "Lists the tools that the gateway has seen, and whether their definitions differ from the accepted\n" +
			"ones. Read the definitions with care: a model takes the description of a tool as an instruction.",
	}, (*Service).listTools)
	ResourceTool = define(Spec{
		Name: "resource tool", Method: "GET", Path: "/resources/{uri}/tools/{name}", Roles: reading,
		Summary: "Show how the definition of a tool has changed since it was accepted",
		Details: "Shows the name, description, schemas and annotations of a tool as lines of JSON. Lines that begin\n" +
			"with - are only in the accepted definition, lines with + only in the new one.",
	}, (*Service).showTool)
	ResourceAccept = define(Spec{
		Name: "resource accept", Method: "POST", Path: "/resources/{uri}/tools/{name}/accept", Fresh: true,
		Summary: "Accept the changed definition of a tool, or keep the accepted one",
		Details: "Accepts the definition with this digest: the new one that the MCP server shows now, or the accepted\n" +
			"one, to keep it. It fails if the MCP server has shown yet another definition meanwhile.",
	}, (*Service).acceptTool)
)

// gatewayed finds an MCP server, and returns how changes of its tools are handled.
func (s *Service) gatewayed(ctx context.Context, raw string) (uri, mode string, err error) {
	r, err := s.findResource(ctx, raw)
	if err != nil {
		return "", "", err
	}
	uri = policy.Canonical(r.URI)
	for i := range s.Config.Resources {
		if own := &s.Config.Resources[i]; policy.Canonical(own.URI) == uri {
			return uri, own.ToolsAccept, nil
		}
	}
	return uri, "", nil // a resource of protect
}

func watchedTool(t storage.Tool, mode string) WatchedTool {
	out := WatchedTool{Name: t.Name, State: ToolAccepted, AcceptedAt: t.Accepted.At, ByOperator: t.AcceptedBy != ""}
	out.AcceptedBy = t.AcceptedBy
	if !t.IsNew() {
		out.Accepted = hex.EncodeToString(t.Accepted.Digest[:])
	}
	if t.IsOffered() {
		out.State, out.OfferedAt, out.Offered = ToolChanged, t.Offered.At, hex.EncodeToString(t.Offered.Digest[:])
		out.Held = config.HoldsTools(mode)
	}
	if t.IsNew() {
		out.State = ToolNew
	}
	return out
}

func (s *Service) listTools(ctx context.Context, in ResourceURL) (Page[WatchedTool], error) {
	out := Page[WatchedTool]{Items: []WatchedTool{}}
	uri, mode, err := s.gatewayed(ctx, in.URI)
	if err != nil {
		return out, err
	}
	all, err := s.Store.Tools(ctx, uri)
	for _, t := range all {
		out.Items = append(out.Items, watchedTool(t, mode))
	}
	return out, err
}

func (s *Service) tool(ctx context.Context, rawURI, name string) (t storage.Tool, mode string, err error) {
	uri, mode, err := s.gatewayed(ctx, rawURI)
	if err != nil {
		return t, mode, err
	}
	t, err = s.Store.Tool(ctx, uri, name)
	if errors.Is(err, storage.ErrNotFound) {
		err = fault(ErrNotFound, "the gateway has seen no tool %q of %s; see: mcp-authd resource tools %s", name, uri, uri)
	}
	return t, mode, err
}

func (s *Service) showTool(ctx context.Context, in ToolOf) (ToolDifference, error) {
	t, mode, err := s.tool(ctx, in.URI, in.Name)
	if err != nil {
		return ToolDifference{}, err
	}
	out := ToolDifference{WatchedTool: watchedTool(t, mode)}
	before, after := definitionLines(t.Accepted), definitionLines(t.Offered)
	if !t.IsOffered() {
		after = before
	}
	out.Lines = difference(before, after)
	return out, nil
}

func (s *Service) acceptTool(ctx context.Context, in ToolAcceptance) (WatchedTool, error) {
	t, mode, err := s.tool(ctx, in.URI, in.Name)
	if err != nil {
		return WatchedTool{}, err
	}
	digest, err := hex.DecodeString(in.Digest)
	if err != nil || len(digest) != len(storage.Hash{}) {
		return WatchedTool{}, fault(ErrInvalid, "%q is not the digest of a definition: 64 hexadecimal digits", in.Digest)
	}
	switch err := s.Store.AcceptTool(ctx, t.Resource, t.Name, storage.Hash(digest), actorName(ctx), s.Now()); {
	case errors.Is(err, storage.ErrChanged):
		return WatchedTool{}, fault(ErrConflict, "the MCP server describes %q otherwise meanwhile; look again: "+
			"mcp-authd resource tool %s %s", t.Name, t.Resource, t.Name)
	case err != nil:
		return WatchedTool{}, err
	}
	s.Audit.Record(ctx, audit.ToolAccepted, slog.String("resource", t.Resource), slog.String("tool", t.Name),
		slog.String("digest", in.Digest))
	t, _, err = s.tool(ctx, in.URI, in.Name)
	return watchedTool(t, mode), err
}

// definitionLines formats a definition, line by line.
func definitionLines(d storage.ToolDefinition) []string {
	if d.At.IsZero() {
		return nil
	}
	var b bytes.Buffer
	if d.Text == "" || json.Indent(&b, []byte(d.Text), "", "  ") != nil {
		return []string{"(it is too long to be kept: digest " + hex.EncodeToString(d.Digest[:]) + ")"}
	}
	return strings.Split(b.String(), "\n")
}

// maxCompared limits how many lines of two definitions are compared.
const maxCompared = 1000

// difference compares the lines of two texts through their longest common subsequence.
func difference(before, after []string) (out []string) {
	if len(before) > maxCompared || len(after) > maxCompared {
		return append(marked("- ", before), marked("+ ", after)...)
	}
	longest := make([][]int, len(before)+1)
	for i := range longest {
		longest[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch {
		case before[i] == after[j]:
			out = append(out, "  "+before[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+before[i])
			i++
		default:
			out = append(out, "+ "+after[j])
			j++
		}
	}
	return append(append(out, marked("- ", before[i:])...), marked("+ ", after[j:])...)
}

func marked(with string, lines []string) (out []string) {
	for _, l := range lines {
		out = append(out, with+l)
	}
	return out
}

// toldTools limits how many tools a finding examines.
const toldTools = 100

// ToolFindings reports whether MCP servers still describe their tools as accepted.
func (s *Service) ToolFindings(ctx context.Context) (f findings, _ error) {
	offered, err := s.Store.OfferedTools(ctx, toldTools)
	if err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for _, t := range offered {
		by[t.Resource] = append(by[t.Resource], t.Name)
	}
	if len(offered) == 0 {
		return nil, nil
	}
	known, err := s.AllResources(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		if names := by[policy.Canonical(r.URI)]; len(names) > 0 {
			f.add("tools", LevelWarning, "see what has changed, and accept it or not: mcp-authd resource tools "+r.URI,
				"tools of %s are described otherwise than it was accepted: %s", r.URI, some(names))
			f[len(f)-1].Resource = r.URI
		}
	}
	return f, nil
}
