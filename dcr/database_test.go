package dcr_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func TestWithDatabase(t *testing.T) {
	r := newRig(t)
	store := r.store
	small := r.register(t, `{`+loopback+`,"client_name":"Ann","token_endpoint_auth_method":"client_secret_post"}`)
	smallID := small["client_id"].(string)
	big := r.register(t, `{"redirect_uris":["https://app.example/`+strings.Repeat("x", 600)+`"],"client_name":"Big","scope":"mcp",
		"token_endpoint_auth_method":"client_secret_basic","client_uri":"https://app.example/","application_type":"web"}`)

	t.Run("AS-145: only what does not fit is stored", func(t *testing.T) {
		rows, err := store.ListClients(t.Context(), "", 10)
		if err != nil || len(rows) != 1 || rows[0].ID != big["client_id"] {
			t.Errorf("got %+v, %v", rows, err)
		}
	})
	t.Run("a stored client resolves with all it registered", func(t *testing.T) {
		c, err := r.Client(t.Context(), big["client_id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != "Big" || c.Scopes.String() != "mcp" ||
			!strings.Contains(string(c.Metadata), `"application_type":"web"`) || !c.CreatedAt.Equal(epoch) ||
			*c.SecretHash != storage.Hash(secrets.Hash(big["client_secret"].(string))) {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("a sealed client is the same with a row and without", func(t *testing.T) {
		sealed, err := r.Client(t.Context(), smallID)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.PutClient(t.Context(), sealed); err != nil {
			t.Fatal(err)
		}
		r.Forget(smallID)
		stored, err := r.Client(t.Context(), smallID)
		if err != nil || !reflect.DeepEqual(stored, sealed) {
			t.Errorf("got %+v, %v\nwant %+v", stored, err, sealed)
		}
	})
	t.Run("a sealed client survives the database", func(t *testing.T) {
		c, err := newRig(t).Client(t.Context(), smallID)
		if err != nil || *c.SecretHash != storage.Hash(secrets.Hash(small["client_secret"].(string))) {
			t.Errorf("got %+v, %v", c, err)
		}
	})
	t.Run("a deleted client is gone, with a row and without", func(t *testing.T) {
		never := r.register(t, `{`+loopback+`}`)["client_id"].(string)
		for _, id := range []string{smallID, big["client_id"].(string), never} {
			if err := store.DeleteClient(t.Context(), id, epoch); err != nil {
				t.Fatal(err)
			}
			r.Forget(id)
			if _, err := r.Client(t.Context(), id); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("%s: got %v, want ErrRevoked", id, err)
			}
		}
	})
	t.Run("a minted client can be stored", func(t *testing.T) {
		c, _, err := dcr.Mint(dcr.Spec{RedirectURIs: []string{"https://app.example/cb"}, Now: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Client(t.Context(), c.ID); err != nil || got.Source != storage.SourceStatic {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
