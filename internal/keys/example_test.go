package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// A manager creates its first key, signs with it and publishes it.
func Example() {
	ctx := context.Background()
	store, _ := sqlite.Open(ctx, ":memory:", sqlite.Options{})
	defer store.Close()
	manager, err := keys.New(ctx, keys.Config{
		Store:      store,
		SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, // in production: a random key that stays
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := manager.Sign(ctx, "at+jwt", map[string]string{"sub": "alice"})
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := manager.Verify(ctx, token, "at+jwt")
	fmt.Println(string(claims), err)
	_, err = manager.Verify(ctx, token, "JWT") // a token of another type
	fmt.Println(errors.Is(err, keys.ErrVerify))
	// Output:
	// {"sub":"alice"} <nil>
	// true
}
