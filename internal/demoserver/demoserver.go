// Package demoserver is the protected MCP server of `mcp-authd demo`: a notebook
// with a few tools that show what authorization looks like from a tool's side.
//
//	whoami      says who the caller is, from the verified token of this very request
//	list_notes  reads the caller's notes; needs the base scope
//	add_note    writes one; needs a further scope, so that step-up can be seen
//	clear_notes deletes them; a person has to approve each call
//	slow_count  takes its time and reports progress
package demoserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The scopes of the demo.
const (
	ScopeBase  = "mcp"
	ScopeWrite = "notes:write"
)

// Resource describes the demo server at uri to the authorization server.
func Resource(uri string) storage.Resource {
	return storage.Resource{URI: uri, Name: "Demo notebook", Scopes: []storage.ScopeText{
		{Name: ScopeBase, Description: "see who you are and read your notes", Default: true},
		{Name: ScopeWrite, Description: "add notes in your name"},
	}}
}

// Rules are the scopes that the demo's operations need.
func Rules() *mcpresource.Rules {
	return &mcpresource.Rules{
		Base:  []string{ScopeBase},
		Tools: map[string][]string{"add_note": {ScopeWrite}},
		Clearances: map[string]mcpresource.Clearance{
			"clear_notes": {By: oauth.ClearanceByPerson},
		},
	}
}

// Server returns the demo server, to stand behind g.Protect. It lists all tools, so
// that add_note can be seen and stepped up to.
func Server(g *mcpresource.Guard) http.Handler {
	n := &notebook{pages: map[string][]string{}}
	return gosdk.Unguarded(g, n.server(), &gosdk.Options{ShowAll: true})
}

const (
	maxNotes    = 100  // per person; older ones go
	maxNoteSize = 2000 // bytes
	maxPeople   = 1000
	maxCount    = 60
)

// notebook keeps the notes of each person in memory.
type notebook struct {
	mu    sync.Mutex // guards pages
	pages map[string][]string
}

func (n *notebook) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcp-authd-demo", Title: "mcp-authd demo notebook", Version: "1.0.0"},
		&mcp.ServerOptions{Instructions: "A demo of a protected MCP server. add_note needs the scope notes:write."})
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s,
		&mcp.Tool{Name: "whoami", Description: "Say who the caller is, by the token of this request.",
			Annotations: readOnly}, n.whoami)
	mcp.AddTool(s, &mcp.Tool{Name: "list_notes", Description: "List the caller's notes.", Annotations: readOnly},
		n.list)
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Add a note. Needs the scope " + ScopeWrite + "."}, n.add)
	mcp.AddTool(s,
		&mcp.Tool{Name: "clear_notes", Description: "Delete the caller's notes. The person has to approve each call."}, n.clear)
	mcp.AddTool(s,
		&mcp.Tool{Name: "slow_count", Description: "Count slowly, reporting progress.", Annotations: readOnly}, n.count)
	return s
}

// Caller is the answer of whoami.
type Caller struct {
	Subject   string   `json:"subject" jsonschema:"the person, as the authorization server names them"`
	Client    string   `json:"client" jsonschema:"the application that calls"`
	Issuer    string   `json:"issuer"`
	Scopes    []string `json:"scopes"`
	ExpiresAt string   `json:"expires_at" jsonschema:"when the access token ends"`
}

var errNobody = errors.New("the request carries no verified caller")

func (*notebook) whoami(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, Caller, error) {
	p, ok := gosdk.Principal(req)
	if !ok {
		return nil, Caller{}, errNobody
	}
	return nil, Caller{
		Subject: p.Subject, Client: p.ClientID, Issuer: p.Issuer, Scopes: append([]string{}, p.Scopes...),
		ExpiresAt: p.ExpiresAt.UTC().Format(time.RFC3339),
	}, nil
}

// Notes is the answer of list_notes and add_note.
type Notes struct {
	Notes []string `json:"notes"`
}

func (n *notebook) list(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, Notes, error) {
	p, ok := gosdk.Principal(req)
	if !ok {
		return nil, Notes{}, errNobody
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return nil, Notes{append([]string{}, n.pages[p.Subject]...)}, nil
}

type newNote struct {
	Text string `json:"text" jsonschema:"what to write down"`
}

func (n *notebook) add(_ context.Context, req *mcp.CallToolRequest, in newNote) (*mcp.CallToolResult, Notes, error) {
	p, ok := gosdk.Principal(req)
	switch {
	case !ok:
		return nil, Notes{}, errNobody
	case in.Text == "" || len(in.Text) > maxNoteSize:
		return nil, Notes{}, fmt.Errorf("a note must have 1 to %d bytes", maxNoteSize)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.pages[p.Subject]; !known && len(n.pages) >= maxPeople {
		return nil, Notes{}, errors.New("the notebook is full")
	}
	pages := append(n.pages[p.Subject], in.Text)
	n.pages[p.Subject] = pages[max(0, len(pages)-maxNotes):]
	return nil, Notes{append([]string{}, n.pages[p.Subject]...)}, nil
}

type whichNotes struct {
	Containing string `json:"containing,omitempty" jsonschema:"those with this text; all of them when left out"`
}

func (n *notebook) clear(
	_ context.Context, req *mcp.CallToolRequest, in whichNotes,
) (*mcp.CallToolResult, Notes, error) {
	p, ok := gosdk.Principal(req)
	if !ok {
		return nil, Notes{}, errNobody
	}
	return nil, Notes{n.forget(p.Subject, in.Containing)}, nil
}

// forget deletes the notes of a person that contain a text, and returns those that are left.
func (n *notebook) forget(person, text string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := slices.DeleteFunc(n.pages[person], func(note string) bool { return strings.Contains(note, text) })
	if n.pages[person] = left; len(left) == 0 {
		delete(n.pages, person)
	}
	return append([]string{}, left...)
}

type countTo struct {
	To           int `json:"to,omitempty" jsonschema:"how far, 1 to 60; 5 when left out"`
	Milliseconds int `json:"milliseconds,omitempty" jsonschema:"pause between steps, up to 2000; 300 when left out"`
}

// Counted is the answer of slow_count.
type Counted struct {
	Counted int `json:"counted"`
}

func (*notebook) count(
	ctx context.Context, req *mcp.CallToolRequest, in countTo,
) (*mcp.CallToolResult, Counted, error) {
	to, pause := min(in.To, maxCount), min(in.Milliseconds, 2000)
	if to <= 0 {
		to = 5
	}
	if pause <= 0 {
		pause = 300
	}
	for i := 1; i <= to; i++ {
		select {
		case <-ctx.Done():
			return nil, Counted{}, fmt.Errorf("stopped at %d: %w", i-1, ctx.Err())
		case <-time.After(time.Duration(pause) * time.Millisecond):
		}
		if token := req.Params.GetProgressToken(); token != nil {
			// A lost progress message is no reason to stop.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(i), Total: float64(to), Message: fmt.Sprintf("%d of %d", i, to),
			})
		}
	}
	return nil, Counted{to}, nil
}
