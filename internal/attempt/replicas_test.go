package attempt

import (
	"bytes"
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestJoinOverReplicas: two servers store the steps of one attempt, the later ones first. Each
// reference finds the whole attempt.
func TestJoinOverReplicas(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		store := testStore(t)
		joinOverReplicas(t, store, store)
		refreshAtAnother(t, store, store)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.Start(t).Database(t)
		open := func() storage.Attempts {
			s, err := postgres.Open(t.Context(), url, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		joinOverReplicas(t, open(), open())
		refreshAtAnother(t, open(), open())
	})
}

func joinOverReplicas(t *testing.T, store, beside storage.Attempts) {
	now, log := noon, &bytes.Buffer{}
	one, other := testRecorder(store, &now, log), testRecorder(beside, &now, log)
	query := url.Values{"client_id": {"app"}, "state": {"s"}, "response_type": {"code"}}
	references := []string{
		record(one, Discovery, "192.0.2.1", 200, nil),
		record(one, Authorize, "192.0.2.9", 200, func(rec *request.Record) { rec.Asked(query) }),
	}
	now = now.Add(time.Second)
	references = append(references, record(other, Consent, "192.0.2.9", 303, func(rec *request.Record) {
		rec.Asked(query)
		rec.Sending("http://127.0.0.1/cb", url.Values{"code": {"the code"}})
	}))
	now = now.Add(time.Second)
	references = append(references, record(one, Token, "192.0.2.1", 200, func(rec *request.Record) {
		form := url.Values{"code": {"the code"}, "grant_type": {"authorization_code"}}
		rec.Sent(form, form.Encode())
	}))
	one.Write(context.Background())
	other.Write(context.Background())
	for _, reference := range references {
		finder := Finder{store, func() time.Time { return now }}
		found, err := finder.Find(context.Background(), Query{Reference: reference})
		if err != nil || len(found) != 1 || len(found[0].Steps) != 4 || !found[0].OK {
			t.Errorf("OB-01: by %s: got %+v, %v", reference, found, err)
		}
	}
}

// refreshAtAnother: a client reads metadata at one server and refreshes at another, which is not an
// unfinished attempt. Only the first refresh after a reading is stored.
func refreshAtAnother(t *testing.T, store, beside storage.Attempts) {
	now, log := noon.Add(time.Hour), &bytes.Buffer{}
	one, other := testRecorder(store, &now, log), testRecorder(beside, &now, log)
	refresh := func(r *Recorder, from string) {
		record(r, Token, from, 200, func(rec *request.Record) {
			form := url.Values{"refresh_token": {"x"}, "grant_type": {"refresh_token"}}
			rec.Sent(form, form.Encode())
		})
	}
	refresh(other, "198.51.100.1") // before the reading
	now = now.Add(time.Second)
	record(one, Discovery, "198.51.100.1", 200, nil)
	now = now.Add(100 * time.Millisecond)
	refresh(other, "198.51.100.1")
	refresh(other, "198.51.100.1")
	refresh(other, "198.51.100.2") // this client has read no metadata
	one.write(t.Context())
	other.follow(t.Context(), false)
	if n := len(other.queue); n != 0 {
		t.Errorf("OB-01: %d refreshes are kept before it is known what other servers have", n)
	}
	now = now.Add(whenStored)
	other.follow(t.Context(), false)
	if other.write(t.Context()); len(other.after) != 0 {
		t.Errorf("OB-01: %d refreshes still wait", len(other.after))
	}
	now = now.Add(time.Minute)
	refresh(one, "198.51.100.1") // after the same reading
	one.Write(t.Context())
	now = now.Add(time.Hour)
	refresh(one, "198.51.100.1") // long after the reading
	one.Write(t.Context())
	finder := Finder{store, func() time.Time { return now }}
	found, err := finder.Find(t.Context(), Query{From: noon.Add(time.Hour)})
	if err != nil || len(found) != 1 || len(found[0].Steps) != 2 || !found[0].OK {
		t.Errorf("OB-01: got %+v, %v", found, err)
	}
}
