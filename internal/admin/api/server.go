package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The scopes of the API.
const (
	ScopeRead  = "admin:read"
	ScopeWrite = "admin:write" // includes ScopeRead
)

// Resource describes an administrative API as a resource of the authorization server: this API, or
// another one with the same scopes.
func Resource(uri, name string) storage.Resource {
	return storage.Resource{URI: uri, Name: name, Own: true, Scopes: []storage.ScopeText{
		{
			Name: ScopeRead, Description: "see the accounts, applications, grants and events of this server",
			Access: storage.AccessRead, Dangerous: true,
		},
		{
			Name: ScopeWrite, Description: "change accounts, applications, grants and keys of this server",
			Access: storage.AccessAdmin, Dangerous: true, Implies: []string{ScopeRead},
		},
	}}
}

// Rules returns the rules of a guard in front of such a resource.
func Rules() *mcpresource.Rules {
	return &mcpresource.Rules{Base: []string{ScopeRead}, Implies: map[string][]string{ScopeWrite: {ScopeRead}}}
}

// Config configures the server.
type Config struct {
	Root    string // the URL of the API, which is the resource of its tokens
	Service *admin.Service
	Callers Callers
	Guard   *mcpresource.Guard // for Root, with Rules
	// Requests stores requests with an Idempotency-Key. Ring encrypts their responses.
	Requests storage.KeyedRequests
	Ring     *secrets.Ring
	Log      *slog.Logger
}

// Server serves the operations.
type Server struct {
	c           Config
	mux         *http.ServeMux // paths relative to the root
	description func() ([]byte, error)
}

// New returns a server of all operations.
func New(c Config) (*Server, error) {
	s := &Server{c: c, mux: http.NewServeMux()}
	s.description = sync.OnceValues(func() ([]byte, error) { return json.Marshal(Describe(c.Root)) })
	s.mux.HandleFunc("GET "+descriptionPath, s.describe)
	for _, v := range admin.All() {
		spec := v.Spec()
		s.mux.Handle(spec.Method+" "+spec.Path, operation{s, v})
	}
	s.mux.HandleFunc("/", s.unknown)
	return s, nil
}

// Register mounts the API and the metadata of its resource.
func (s *Server) Register(mux *http.ServeMux) error {
	root, err := url.Parse(s.c.Root)
	if err != nil {
		return err
	}
	documents, err := url.Parse(s.c.Guard.MetadataURL())
	if err != nil {
		return err
	}
	mux.Handle(documents.Path, s.c.Guard.Handler(http.NotFoundHandler()))
	mux.Handle(root.Path+"/", http.StripPrefix(root.Path, s.mux))
	return nil
}

const descriptionPath = "/openapi.json"

func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	body, err := s.description()
	if err != nil { // tests of the description would fail
		s.c.Log.Error("the description of the API cannot be written", "error", err)
		write(w, problem{kind: kindFault, detail: "The description cannot be written."})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write(body) // fails only if the client is gone
}

// NoOperation answers a request for a path without an operation.
func NoOperation(w http.ResponseWriter) {
	write(w, problem{kind: kindNotFound, detail: "There is no operation at this path. See: /api/v1" + descriptionPath})
}

// unknown answers requests for unknown paths and for unsupported methods.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if _, pattern := s.mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		NoOperation(w)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	write(w, problem{kind: kindMethod, detail: "This path has other methods."})
}

// operation serves one operation.
type operation struct {
	*Server
	verb admin.Verb
}

// ServeHTTP identifies the caller, parses the input, runs the operation, and writes its output.
func (o operation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	by, refused := o.authorize(r, o.verb.Spec())
	if refused != nil {
		o.refuse(w, r, refused)
		return
	}
	defer by.release()
	in, refused := readInput(w, r, o.verb)
	if refused != nil {
		o.refuse(w, r, refused)
		return
	}
	key, refused := keyOf(r, o.verb.Spec())
	switch {
	case refused != nil:
		o.refuse(w, r, refused)
	case key != "":
		o.serveOnce(w, r, by, key, in)
	default:
		o.serve(w, r, by, in)
	}
}

func (o operation) serve(w http.ResponseWriter, r *http.Request, by caller, in reflect.Value) {
	answer, etag, refused := o.call(r.Context(), by, conditionsOf(r), in)
	switch {
	case refused != nil:
		o.refuse(w, r, refused)
	case etag != "":
		answer.writeTagged(w, r, etag)
	default:
		answer.write(w)
	}
}

// call runs the operation, unless the object has changed since the caller saw it.
func (o operation) call(
	ctx context.Context, by caller, c conditions, in reflect.Value,
) (a answer, etag string, refused *problem) {
	out := reflect.New(o.verb.Output())
	do := func(ctx context.Context) error { return by.Call(ctx, o.verb, in.Interface(), out.Interface()) }
	var err error
	if c.match == "" {
		err = do(ctx)
	} else {
		// The lock prevents changes between the check and the operation.
		thing := o.c.Service.Thing(ctx, o.verb.Spec(), in.Interface())
		err = o.c.Service.Alone(ctx, thing, func(ctx context.Context) error {
			if refused = o.precondition(ctx, by, c, in); refused != nil {
				return nil
			}
			return do(ctx)
		})
	}
	proposed := (*admin.ProposedError)(nil)
	switch {
	case errors.As(err, &proposed):
		return proposalAnswer(proposed.Proposal)
	case err != nil:
		return answer{}, "", o.explain(ctx, err)
	case refused != nil:
		return answer{}, "", refused
	}
	return answerOf(o.verb, out.Elem())
}

// explain returns the problem for the error of an operation. Internal errors are only logged.
func (s *Server) explain(ctx context.Context, err error) *problem {
	p, known := explain(err)
	if !known && ctx.Err() == nil {
		s.c.Log.ErrorContext(ctx, "an operation of the API has failed", "error", err)
	}
	return p
}

// refuse writes a problem, with the challenge that tells a client how to proceed.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	if p.challenge != nil {
		p.challenge.ResourceMetadata = s.c.Guard.MetadataURL()
		w.Header().Set("WWW-Authenticate", p.challenge.String())
	}
	write(w, *p)
}

// scopeFor returns the scope that an operation needs.
func scopeFor(s admin.Spec) oauth.Scopes {
	if s.Changes() {
		return oauth.Scopes{ScopeWrite}
	}
	return oauth.Scopes{ScopeRead}
}
