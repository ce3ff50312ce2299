package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// pair starts a primary with a synchronous standby.
func pair(t *testing.T) (primary, standby *pgtest.Server, url string) {
	t.Helper()
	primary = pgtest.StartOwn(t)
	standby = primary.Standby(t, "n2")
	err := errors.Join(primary.Exec("ALTER SYSTEM SET synchronous_standby_names = 'n2'"),
		primary.Exec("SELECT pg_reload_conf()"))
	if err == nil {
		err = primary.WaitFor("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	}
	if err != nil {
		t.Fatal(err)
	}
	return primary, standby, primary.URL()
}

// grants approves and redeems grants with the ids, and returns their refresh tokens.
func grants(t *testing.T, s *Store, ids ...string) []storage.NumberedRefresh {
	t.Helper()
	ctx, now, soon := t.Context(), time.Now(), time.Now().Add(time.Hour)
	if err := s.CreateUser(ctx, storage.User{ID: "u", Name: "u", CreatedAt: now}); err != nil &&
		!errors.Is(err, storage.ErrExists) {
		t.Fatal(err)
	}
	var out []storage.NumberedRefresh
	for _, id := range ids {
		approve(t, s, id)
		refresh := storage.NumberedRefresh{
			GrantID: id, Generation: 1, IssuedAt: now, ExpiresAt: soon, Secret: hashOf("secret " + id),
		}
		_, err := s.RedeemCode(ctx,
			storage.RedeemCode{
				Hash: hashOf("code " + id), GrantID: id, ClientID: "c", Now: now,
				Refresh: &storage.Refresh{Secret: refresh.Secret, ExpiresAt: soon},
			})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, refresh)
	}
	return out
}

// approve lets the user of grants approve a grant, whose code is named after it.
func approve(t *testing.T, s *Store, id string) {
	t.Helper()
	approveUntil(t, s, id, time.Now().Add(time.Hour))
}

// approveUntil is approve with the expiry of the code.
func approveUntil(t *testing.T, s *Store, id string, expires time.Time) {
	t.Helper()
	ctx, now, soon := t.Context(), time.Now(), time.Now().Add(time.Hour)
	err := errors.Join(
		s.PutSession(ctx,
			storage.Session{Hash: hashOf("session " + id), UserID: "u", CreatedAt: now, ExpiresAt: soon},
			storage.SignInStart{}),
		s.Approve(ctx,
			storage.Approval{
				Session: hashOf("session " + id), Client: &storage.Client{ID: "c", CreatedAt: now}, Now: now,
				Grant: storage.Grant{ID: id, ClientID: "c", UserID: "u", Resource: id, CreatedAt: now, ExpiresAt: soon},
				Code:  storage.Code{Hash: hashOf("code " + id), ExpiresAt: expires}}))
	if err != nil {
		t.Fatal(err)
	}
}

func hashOf(text string) (h storage.Hash) {
	copy(h[:], text)
	return h
}

// TestH1WhatIsNotReplicatedIsNotAcknowledged (operations H1): a commit that PostgreSQL has not
// replicated as configured is not a success, neither at first nor when the verb is repeated. A
// promotion would undo it.
func TestH1WhatIsNotReplicatedIsNotAcknowledged(t *testing.T) {
	for _, level := range []string{"on", "remote_apply"} {
		t.Run(level, func(t *testing.T) {
			ctx, now, soon := t.Context(), time.Now(), time.Now().Add(time.Hour)
			primary, standby, url := pair(t)
			before := open(t, url+"&lc_messages=C&synchronous_commit="+level, Options{})
			tokens := grants(t, before, "revoked", "rotated", "withdrawn", "kept", "forgotten")
			rotate := func(s *Store, token storage.NumberedRefresh) error {
				_, err := s.RotateRefresh(ctx,
					storage.RotateRefresh{Token: token, ClientID: "c", Now: now, Grace: time.Minute,
						Next: storage.Refresh{ExpiresAt: soon}})
				return err
			}
			if err := errors.Join(rotate(before, tokens[3]), before.Close()); err != nil {
				t.Fatal(err)
			}
			if err := standby.Stop(pgtest.Immediate); err != nil {
				t.Fatal(err)
			}
			s := open(t, url+"&synchronous_commit="+level, Options{SkipMigrate: true})
			s.timeout = 300 * time.Millisecond
			verbs := []struct {
				name string
				do   func() error
			}{
				{"RevokeGrant", func() error { return s.RevokeGrant(ctx, "revoked", storage.ByOperator, now) }},
				{"RevokeRefresh", func() error {
					_, err := s.RevokeRefresh(ctx, tokens[0], "c", now)
					return err
				}},
				{"WithdrawGrant", func() error { return s.WithdrawGrant(ctx, "withdrawn", storage.ByOperator, now) }},
				{"RotateRefresh", func() error { return rotate(s, tokens[1]) }},
				{"RotateRefresh within the grace of a lost reply", func() error { return rotate(s, tokens[3]) }},
				{"DenyToken", func() error { return s.DenyToken(ctx, "token", soon) }},
				{"SetUserDisabled", func() error { return s.SetUserDisabled(ctx, "u", false, now) }},
				{"DeleteClient", func() error { return s.DeleteClient(ctx, "unknown", now) }},
				{"EndSession", func() error { return s.EndSession(ctx, hashOf("session kept"), now) }},
				{"ForgetConsent", func() error { return s.ForgetConsent(ctx, "u", "c", "forgotten", now) }},
				{"Remember", func() error {
					_, err := s.Remember(ctx, "probe", []byte("x"))
					return err
				}},
			}
			for range 2 { // the second time they find the result of the first
				for _, v := range verbs {
					err := v.do()
					if err == nil ||
						!errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "not replicated") {
						t.Errorf("%s: got %v, want an error that says nothing of the outcome", v.name, err)
					}
				}
			}
			if err := errors.Join(s.Close(), primary.Stop(pgtest.Kill), standby.Start()); err != nil {
				t.Fatal(err)
			}
			if err := standby.Promote(); err != nil {
				t.Fatal(err)
			}
			after := open(t, strings.Replace(url, primary.Host(), standby.Host(), 1), Options{})
			defer after.Close()
			acknowledged := tokens[3]
			acknowledged.Generation++
			out, err := after.RotateRefresh(ctx,
				storage.RotateRefresh{
					Token: acknowledged, ClientID: "c", Now: now, Next: storage.Refresh{ExpiresAt: soon},
				})
			if err != nil || out.Recovered {
				t.Errorf("an acknowledged write is lost: %+v, %v", out, err)
			}
		})
	}
}

// The warning is recognised in any language of the server, and no other warning matches.
func TestH1TheWarningIsKnownInEveryLanguage(t *testing.T) {
	for _, c := range []struct {
		notice pgconn.Notice
		want   bool
	}{
		{pgconn.Notice{
			Code: "01000", Message: "storniere Warten auf synchrone Replikation wegen Benutzeraufforderung",
			Routine: "SyncRepWaitForLSN"}, true},
		{pgconn.Notice{Code: "01000", File: "syncrep.c"}, true},
		{pgconn.Notice{
			Code: "01000", Message: "canceling wait for synchronous replication due to user request",
			Routine: "exec_stmt_raise"}, false},
		{pgconn.Notice{Code: "00000", Routine: "SyncRepWaitForLSN"}, false},
	} {
		if got := gaveUpReplication(&c.notice); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.notice, got, c.want)
		}
	}
}
