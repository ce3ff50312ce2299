package dcr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// A client registers itself and is resolved by its new ID. Nothing is stored: the ID contains the
// registration.
func Example() {
	ctx := context.Background()
	store, _ := sqlite.Open(ctx, ":memory:", sqlite.Options{})
	defer store.Close()
	registry, err := dcr.New(dcr.Config{
		Store:      store,
		SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, // in production: a random key that stays
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := strings.NewReader(`{"client_name": "Notes", "redirect_uris": ["http://127.0.0.1/callback"]}`)
	request := httptest.NewRequest("POST", "/register", body)
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	registry.ServeHTTP(w, request)
	var reply struct {
		ID         string `json:"client_id"`
		AuthMethod string `json:"token_endpoint_auth_method"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		fmt.Println(err)
		return
	}
	client, err := registry.Client(ctx, reply.ID)
	fmt.Println(w.Code, reply.AuthMethod)
	fmt.Println(client.Name, client.RedirectURIs, err)
	// Output:
	// 201 none
	// Notes [http://127.0.0.1/callback] <nil>
}
