package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// Issue 12, 3.4: each index of grants must be worth its size. An hour after an upgrade adds indexes
// with short keys, a running server drops the old ones. From then on, a code that names no grant is
// not searched.
func TestIndexesOfGrantsWithLongKeysGo(t *testing.T) {
	ctx, url := context.Background(), pgtest.Start(t).Database(t)
	conn := before(t, url, "grant_keys")
	s := open(t, url, Options{})
	defer s.Close()
	indexes := func() (out []string) {
		t.Helper()
		rows, err := conn.Query(ctx, "SELECT indexname FROM pg_indexes WHERE tablename = 'grants' ORDER BY 1")
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	short := []string{
		"grants_by_client", "grants_by_pair", "grants_by_person", "grants_for_programs",
		"grants_paused", "grants_pkey", "grants_revoked", "grants_status", "grants_sweep", "grants_upstream",
	}
	if got := indexes(); len(got) != len(short)+4 {
		t.Errorf("while an older replica may run: got %q", got)
	}
	for range 2 { // one step waits for the other
		pass(t, s, time.Hour)
		if err := s.Tend(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := indexes(); !slices.Equal(got, short) {
		t.Errorf("got %q, want %q", got, short)
	}
	if _, err := conn.Exec(ctx, `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge, code_expires_at, sweep_at)
		VALUES ('g', 'c', '', 'r', '[]', 0, 0, 1e15, decode(repeat('00', 32), 'hex'), '', '', 1e15, 1e15)`); err != nil {
		t.Fatal(err)
	}
	r := storage.RedeemCode{ClientID: "c", Now: time.Now()}
	if _, err := s.RedeemCode(ctx, r); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a code that names no grant: got %v, want ErrNotFound", err)
	}
	r.GrantID = "g"
	if _, err := s.RedeemCode(ctx, r); err != nil {
		t.Errorf("a code that names its grant: %v", err)
	}
}
