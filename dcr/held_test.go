package dcr_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// heldKeys maps the held applications. A nil map fails every read.
type heldKeys map[string]storage.Hold

func (h heldKeys) Holds(context.Context) (map[string]storage.Hold, error) {
	if h == nil {
		return nil, errors.New("the database is away")
	}
	return h, nil
}

// TestHeldApplications: EN-02, OP-04. A blocked application can neither register nor continue, with
// any of its registrations or its metadata document, within a second. The error says that the
// administrator has blocked it.
func TestHeldApplications(t *testing.T) {
	const document = "https://app.example/client.json"
	held := heldKeys{}
	r := newRig(t, func(c *dcr.Config) { c.Holds, c.Documents.Enabled = held, true })
	const body = `{"client_name":"Claude",` + loopback + `}`
	id, _ := r.register(t, body)["client_id"].(string)
	c, err := r.Client(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	held[c.Application()] = storage.Hold{Application: c.Application(), Blocked: true}
	held[document] = storage.Hold{Application: document, Blocked: true}
	r.pass(time.Second)
	for name, find := range map[string]func() (storage.Client, error){
		"kept":    func() (storage.Client, error) { return r.Client(t.Context(), id) },
		"current": func() (storage.Client, error) { return r.Current(t.Context(), id) },
		"fetched": func() (storage.Client, error) { return r.Fetch(t.Context(), document) },
	} {
		c, err := find()
		if !errors.Is(err, dcr.ErrHeld) || oauth.AsError(err).Code != oauth.UnauthorizedClient || c.ID == "" {
			t.Errorf("EN-02: %s: %+v, %v", name, c, err)
		}
	}
	w := r.send("POST", strings.Replace(body, "8080", "9090", 1))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "has blocked this application") {
		t.Errorf("EN-02: a new registration: %d %s", w.Code, w.Body)
	}
	r.register(t, `{"client_name":"Claude","redirect_uris":["https://elsewhere.example/cb"]}`) // RU-18: it is not held

	held[c.Application()] = storage.Hold{Application: c.Application()}
	r.pass(time.Second)
	_, err = r.Current(t.Context(), id)
	if !errors.Is(err, storage.ErrPaused) || oauth.AsError(err).Code != oauth.TemporarilyUnavailable {
		t.Errorf("EN-02: a paused application: %v", err)
	}
	away := newRig(t, func(c *dcr.Config) { c.Holds = heldKeys(nil) })
	if w := away.send("POST", body); w.Code != http.StatusServiceUnavailable {
		t.Errorf("EN-02: a registration while holds cannot be read: %d %s", w.Code, w.Body)
	}
}
