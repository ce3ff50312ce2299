package authserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// outOfReach fails to read documents.
type outOfReach struct{ cause string }

func (o outOfReach) Fetch(context.Context, string) (storage.Client, error) {
	return storage.Client{}, notFetched{errors.New(o.cause)}
}
func (outOfReach) Vouched(storage.Client) bool { return false }

type notFetched struct{ error }

func (notFetched) Unfetched() {}

// SP-12, protocol 2.5: the page about a document that cannot be fetched does not give the reason,
// nor that this server is busy.
func TestDocumentOutOfReach(t *testing.T) {
	pages := map[string]string{}
	for _, cause := range []string{"address refused: 10.0.0.1", "no such host"} {
		r := newRig(t, func(c *Config) { c.Registry = &registry{Clients: c.Store, Documents: outOfReach{cause}} })
		p := r.person()
		p.approve(authorizeQuery())
		pg := p.get("/authorize?" + authorizeQuery("client_id", "https://down.example/client.json").Encode())
		if pg.status != http.StatusServiceUnavailable || pg.header.Get("Retry-After") == "" ||
			!strings.Contains(pg.body, "describes this application cannot be fetched") {
			t.Errorf("%s: got %d %.800s", cause, pg.status, pg.body)
		}
		if strings.Contains(pg.body, cause) || strings.Contains(pg.body, "busy") {
			t.Errorf("%s: the page tells the cause, or blames this server: %.800s", cause, pg.body)
		}
		if !strings.Contains(r.log.String(), cause) {
			t.Errorf("%s: the log does not tell the cause", cause)
		}
		pages[cause], _, _ = strings.Cut(pg.body, "Reference for the operator")
	}
	if pages["no such host"] != pages["address refused: 10.0.0.1"] {
		t.Error("two causes have two pages")
	}
}
