package thirdparty_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// Members of an organisation sign in at GitHub. Users whose address is in a company's domain sign
// in at its OpenID Connect provider. Assign the delegation to authserver.Config.Delegation, and
// call Run beside the server.
func Example() {
	ctx := context.Background()
	store, _ := sqlite.Open(ctx, ":memory:", sqlite.Options{})
	defer store.Close()
	delegation, err := thirdparty.New(thirdparty.Config{
		Issuer:     "https://auth.example.com",
		Store:      store,
		SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, // in production: a random key that stays
		Connectors: []thirdparty.Connector{
			{
				ID: "github", Type: "github", ClientID: "Ov23liExample", ClientSecret: "secret",
				Allow: thirdparty.Rules{Organizations: []string{"example"}},
			},
			{
				ID: "company", Type: "oidc", Name: "Example Inc.", Issuer: "https://id.example.com",
				ClientID: "mcp-authd", ClientSecret: "secret", Domains: []string{"example.com"},
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer delegation.Close()
	for _, p := range delegation.Providers() {
		fmt.Println(p.ID, p.Name)
	}
	fmt.Println(delegation.Route("alice@example.com"))

	_, err = thirdparty.New(thirdparty.Config{
		Issuer: "https://auth.example.com", Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
		Connectors: []thirdparty.Connector{{ID: "Git Hub", Type: "github"}},
	})
	fmt.Println(errors.Is(err, thirdparty.ErrConfig))
	// Output:
	// github GitHub
	// company Example Inc.
	// company
	// true
}
