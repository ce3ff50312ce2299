package session_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"

	"github.com/mcp-authd/mcp-authd/authserver/internal/session"
)

// A sign-in is a cookie for the browser and its hash for the store. The state that a page passes to
// the next one is sealed for that browser, and does not open in another.
func Example() {
	manager, err := session.New(session.Config{
		SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)}, // in production: a random key that stays
		Issuer:     "https://auth.example.com",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	minted := manager.Mint("usr_alice")
	w := httptest.NewRecorder()
	next := httptest.NewRequest("GET", "/authorize", nil)
	manager.SetCurrent(w, next, minted.InBrowser())
	for _, c := range w.Result().Cookies() {
		next.AddCookie(c)
	}
	hash, ok := manager.Token(next)
	fmt.Println(ok, hash == minted.Session.Hash)

	sealed, err := manager.SealStep("consent", "browser-1", "notes:read")
	if err != nil {
		fmt.Println(err)
		return
	}
	var scope string
	fmt.Println(manager.OpenStep("consent", "browser-1", sealed, &scope), scope)
	fmt.Println(manager.OpenStep("consent", "browser-2", sealed, &scope))
	// Output:
	// true true
	// <nil> notes:read
	// session: step is not valid
}
