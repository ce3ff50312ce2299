package main

import (
	"context"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// scriptProgramKey implements programkey DATABASE PERSON NAME: it creates an API key of a user, and
// sets $KEY to its client and $GRANT to its grant.
func scriptProgramKey(ts *testscript.TestScript, _ bool, args []string) {
	ctx, now := context.Background(), time.Now()
	s, err := sqlite.Open(ctx, ts.MkAbs(args[0]), sqlite.Options{})
	ts.Check(err)
	defer s.Close()
	u, err := s.UserByName(ctx, args[1])
	ts.Check(err)
	se := storage.Session{
		Hash: secrets.Hash(secrets.Token("")), UserID: u.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	ts.Check(s.PutSession(ctx, se, storage.SignInStart{PasswordHash: u.PasswordHash}))
	digest := storage.Hash(secrets.Hash(secrets.Token("")))
	k := storage.ProgramKey{
		Session: se.Hash,
		Client: storage.Client{
			ID: secrets.ID("key_"), SecretHash: &digest, Name: args[2], AuthMethod: "client_secret_basic",
			Scopes: oauth.Scopes{"mcp", "notes:write"}, Resources: []string{"https://mcp.example.com/mcp"},
			Source: storage.SourcePerson, CreatedAt: now,
		},
	}
	k.Grant = storage.Grant{
		ID: secrets.ID("grt_"), ClientID: k.Client.ID, UserID: u.ID, Scopes: k.Client.Scopes,
		Resource: k.Client.Resources[0], CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour),
	}
	ts.Check(s.MakeProgramKey(ctx, k))
	ts.Setenv("KEY", k.Client.ID)
	ts.Setenv("GRANT", k.Grant.ID)
}
