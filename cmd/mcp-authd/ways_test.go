package main

import (
	"context"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// scriptWay implements way DATABASE NAME [RPID [alone]]: it gives a user a passkey and sets $WAY to
// its ID. Without RPID, it gives an authenticator app whose secret no key has encrypted. With
// alone, it removes the password.
func scriptWay(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, ts.MkAbs(args[0]), sqlite.Options{})
	ts.Check(err)
	defer s.Close()
	u, err := s.UserByName(ctx, args[1])
	ts.Check(err)
	w := storage.Way{
		ID: secrets.ID("way_"), UserID: u.ID, Kind: storage.App, Name: "Phone", Data: []byte("{}"),
		CreatedAt: time.Now(),
	}
	if len(args) > 2 {
		w.Kind, w.RPID, w.CredentialID = storage.Passkey, args[2], secrets.Bytes(16)
	}
	ts.Check(s.AddWay(ctx, w, storage.Hash{}))
	if len(args) > 3 {
		ts.Check(s.RemovePassword(ctx, u.ID, storage.Admission{RPIDs: args[2:3]}, storage.Hash{}))
	}
	ts.Setenv("WAY", w.ID)
}
