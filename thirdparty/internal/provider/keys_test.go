package provider

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
)

// RU-10: an invalid key set is the provider's fault.
func TestNoKeySet(t *testing.T) {
	u := fakeidp.Start(t)
	u.Fail(fakeidp.Keys, fakeidp.Fault{Status: 200, Body: `{"keys":null}`})
	_, _, err := travel(t, connect(t, toFake(u)), u, nil)
	wantError(t, err, ErrGarbage)
}

// Security PL1, RFC 7519 4: claim names are compared exactly.
func TestNamesOfClaims(t *testing.T) {
	for _, name := range []string{"iss", "aud", "exp", "nonce", "sub"} {
		for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			t.Run(other+" alone is not "+name, func(t *testing.T) {
				u := fakeidp.Start(t)
				u.Behave(func(b *fakeidp.Behaviour) {
					b.EditIDToken = func(_, c map[string]any) { c[other] = c[name]; delete(c, name) }
				})
				_, _, err := travel(t, connect(t, toFake(u)), u, nil)
				wantError(t, err, ErrGarbage)
			})
		}
	}
	t.Run("an audience beside another one of almost the same name", func(t *testing.T) {
		u := fakeidp.Start(t)
		u.Behave(func(b *fakeidp.Behaviour) {
			b.EditIDToken = func(_, c map[string]any) { c["Aud"], c["aud"] = c["aud"], "another-client" }
		})
		_, _, err := travel(t, connect(t, toFake(u)), u, nil)
		wantError(t, err, ErrGarbage)
	})
}
