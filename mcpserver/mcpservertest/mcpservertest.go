// Package mcpservertest runs a server of package mcpserver in a test, with its accounts, sign-in and
// consent:
//
//	srv := mcpservertest.Serve(t, tools)
//	alice := srv.Person("alice").Approve("notes:read")
//	session := gosdktest.Connect(t, srv.URL, alice)
//
// It is the whole of mcp-authd and takes a second. Tests of tools and scopes alone are faster with
// package gosdktest, which needs no accounts.
package mcpservertest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/visit"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpserver"
	"github.com/mcp-authd/mcp-authd/mcpserver/internal/started"
)

// Server is a running server.
type Server struct {
	URL    string // of the MCP endpoint
	Issuer string // of its authorization server

	t    testing.TB
	auth *authserver.Server
}

// Serve runs mcpserver.Serve with a new database on a free port until the test ends. adjust may
// change its options. Like mcpserver.Serve, it reads the environment variables of mcp-authd.
func Serve(t testing.TB, tools *gosdk.Tools, adjust ...func(*mcpserver.Options)) *Server {
	t.Helper()
	s := &Server{t: t}
	o := mcpserver.Options{
		Listen: "127.0.0.1:0", DataDir: t.TempDir(), Config: os.DevNull, Logger: slog.New(slog.DiscardHandler),
		Ready: func(mcpserver.Ready) {},
	}
	for _, f := range adjust {
		f(&o)
	}
	tell := o.Ready
	o.Ready = func(r mcpserver.Ready) { s.URL = r.MCPURL; tell(r) }
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	ctx = started.With(ctx, func(a *authserver.Server) { s.auth = a; close(ready) })
	go func() { ended <- mcpserver.Serve(ctx, tools, o) }()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		t.Fatalf("mcpservertest: the server does not start: %v", err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("mcpservertest: the server ended with %v", err)
		}
	})
	s.Issuer = strings.TrimSuffix(s.URL, "/mcp")
	return s
}

// Person creates an account with a password, and returns its user with a browser of their own.
func (s *Server) Person(name string) *Person {
	s.t.Helper()
	password := rand.Text()
	if _, err := s.auth.Users().Create(s.t.Context(), name, password, false); err != nil {
		s.t.Fatalf("mcpservertest: the account %q cannot be created: %v", name, err)
	}
	return &Person{server: s, browser: visit.NewPerson(name, password)}
}
