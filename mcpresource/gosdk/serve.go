package gosdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/internal/stopping"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ServeOptions configures Serve. Resource and Issuer are required.
type ServeOptions struct {
	// Resource is the public URL of the MCP server, such as "https://notes.example.com/mcp".
	Resource string
	// Issuer is the authorization server that issues its tokens, such as
	// "https://auth.example.com".
	Issuer string
	// Listen is the address to listen on. Default: the host and port of Resource if it is on
	// loopback, else 127.0.0.1:8080, behind a proxy that terminates TLS.
	Listen string
	Logger *slog.Logger // default: slog.Default
	// Finish is how long calls may continue after ctx has ended. After that they get an error.
	// Default: 30 seconds.
	Finish time.Duration
	// Adapter holds further options of the server. Default: Options with ShowAll, so that clients
	// find tools that need more scopes.
	Adapter *Options
	// Adjust changes the configuration of the guard, such as its limits. Its Policy is the
	// *mcpresource.Rules of the tools.
	Adjust func(*mcpresource.Config)
}

// Serve serves the server of tools at o.Resource, for users who signed in at o.Issuer, until ctx
// ends. It then closes listening streams, lets calls continue for up to o.Finish, and returns nil.
// While it serves, GET /healthz gets 200. It returns an error at once if an option is wrong or the
// issuer is unavailable. It also does so if the issuer does not know the resource or one of its
// scopes.
//
// Package mcpserver does the same with a built-in authorization server.
func Serve(ctx context.Context, tools *Tools, o ServeOptions) error {
	address, err := o.check()
	if err != nil {
		return err
	}
	log := cmp.Or(o.Logger, slog.Default())
	v, err := mcpresource.Discover(ctx, o.Issuer, nil)
	if err != nil {
		return fmt.Errorf("gosdk: Issuer: %s", strings.ReplaceAll(err.Error(), "\n", "; ")) // one for each place
	}
	self := tools.Implementation(ctx)
	c := mcpresource.Config{
		Resource:             o.Resource,
		AuthorizationServers: []string{o.Issuer},
		Validator:            v,
		Metadata:             mcpresource.Metadata{Name: cmp.Or(self.Title, self.Name)},
		CORS:                 true,
		Logger:               log,
	}
	if err := tools.Configure(&c); err != nil {
		return err
	}
	if o.Adjust != nil {
		o.Adjust(&c)
	}
	if err := tools.askable(&c, o); err != nil {
		return err
	}
	guard, err := mcpresource.New(c)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("gosdk: Listen: %w: choose another address", err)
	}
	log.InfoContext(ctx, "the MCP server is ready", "resource", o.Resource, "listen", l.Addr().String())
	return New(guard, tools.Server(), o.adapter(log)).serve(ctx, l, log, cmp.Or(o.Finish, stopping.Finish))
}

// askable returns an error if a tool needs approval but no Clearances is configured.
func (t *Tools) askable(c *mcpresource.Config, o ServeOptions) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c.Clearances != nil || len(t.clear) == 0 {
		return nil
	}
	return fmt.Errorf("gosdk: the tool %q has a Clearance, and a person is asked at the Issuer: in Adjust, set "+
		"c.Clearances to what mcpresource.NewClearances returns for ClearancesConfig{Issuer: %q, ClientID, ClientSecret}, "+
		"the credentials of a client that names this resource (mcp-authd client add --grant client_credentials --resource %s)",
		slices.Min(slices.Collect(maps.Keys(t.clear))), o.Issuer, o.Resource)
}

// check checks the options and returns the address to listen on.
func (o ServeOptions) check() (string, error) {
	u, err := url.Parse(o.Resource)
	i, issuerErr := url.Parse(o.Issuer)
	switch {
	case o.Resource == "":
		return "", errors.New("gosdk: Resource is empty: set the public URL of this MCP server, such as https://notes.example.com/mcp")
	case u != nil && u.Path == healthPath:
		return "", errors.New("gosdk: Resource: " + healthPath +
			" is where health checks ask: choose another path, such as /mcp")
	case o.Issuer == "":
		return "", errors.New("gosdk: Issuer is empty: set that of the authorization server, such as https://auth.example.com; " +
			"package mcpserver has one in the same process")
	case err != nil || u.Host == "" || oauth.InClear(o.Resource):
		return "", fmt.Errorf("gosdk: Resource %q is not a URL such as https://notes.example.com/mcp (http is for localhost only)",
			o.Resource)
	case issuerErr != nil || i.Host == "" || oauth.InClear(o.Issuer):
		return "", fmt.Errorf("gosdk: Issuer %q is not a URL such as https://auth.example.com (http is for localhost only)", o.Issuer)
	case o.Listen != "":
		return o.Listen, nil
	case oauth.IsLoopbackHost(u.Hostname()) && u.Port() != "":
		return u.Host, nil
	}
	return "127.0.0.1:8080", nil
}

func (o ServeOptions) adapter(log *slog.Logger) *Options {
	if o.Adapter != nil {
		return o.Adapter
	}
	return &Options{ShowAll: true, Logger: log}
}

// serve serves on l until ctx ends, and then shuts down gracefully.
func (a *Adapter) serve(ctx context.Context, l net.Listener, log *slog.Logger, finish time.Duration) error {
	requests := stopping.NewRequests(ctx)
	defer requests.Close()
	h := &http.Server{
		Handler:           withHealth(a.Handler()),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests.Context() },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("gosdk: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	return requests.End(finish, []func(context.Context) error{a.Close}, h)
}

// withHealth answers GET /healthz, which tells platforms that the process serves requests.
func withHealth(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probe := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path == healthPath
		if !probe {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok\n")) // the client may have gone
	})
}

// healthPath is the path for health checks, the same as in mcp-authd.
const healthPath = "/healthz"

// Implementation returns the name and version that the server reports to clients. It is empty if
// the server reports none.
func (t *Tools) Implementation(ctx context.Context) (out mcp.Implementation) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, server := mcp.NewInMemoryTransports()
	session, err := t.server.Connect(ctx, server, nil)
	if err != nil {
		return out
	}
	defer session.Close()
	conn, err := client.Connect(ctx)
	if err != nil {
		return out
	}
	defer conn.Close()
	id, _ := jsonrpc.MakeID("1") // strings are always valid
	params, _ := json.Marshal(&mcp.InitializeParams{
		ProtocolVersion: protocol.Rev20251125,
		Capabilities:    &mcp.ClientCapabilities{},
		ClientInfo:      &mcp.Implementation{Name: "mcp-authd", Version: "1"},
	})
	if err := conn.Write(ctx, &jsonrpc.Request{ID: id, Method: "initialize", Params: params}); err != nil {
		return out
	}
	answer, err := conn.Read(ctx)
	if err != nil {
		return out
	}
	var result mcp.InitializeResult
	if r, ok := answer.(*jsonrpc.Response); ok && r.Error == nil && json.Unmarshal(r.Result, &result) == nil &&
		result.ServerInfo != nil {
		out = *result.ServerInfo
	}
	return out
}
