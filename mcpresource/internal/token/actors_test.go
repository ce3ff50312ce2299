package token

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestIntrospectedActors: AS-243, RFC 8693 §4.1. Actors are read from introspections.
func TestIntrospectedActors(t *testing.T) {
	const (
		authServer = "https://auth.example.com"
		chain      = `{"sub":"reader","nid":"nod_2","act":{"sub":"planner","nid":"nod_1"}}`
	)
	want := []oauth.Actor{{Subject: "reader", NodeID: "nod_2"}, {Subject: "planner", NodeID: "nod_1"}}
	deep := strings.Repeat(`{"sub":"a","act":`, oauth.MaxActors) + `{"sub":"a"}` + strings.Repeat("}", oauth.MaxActors)
	t.Run("of an introspection in the same process", func(t *testing.T) {
		p, err := principalOf(oauth.Introspection{Active: true, Act: oauth.ChainOf(want)})
		if err != nil || !slices.Equal(p.Actors(), want) {
			t.Errorf("got %+v, %v", p.Actors(), err)
		}
	})
	t.Run("of an introspection elsewhere", func(t *testing.T) {
		p, err := introspectionAnswer{Act: []byte(chain)}.principal(authServer, nil)
		if err != nil || !slices.Equal(p.Actors(), want) {
			t.Errorf("got %+v, %v", p.Actors(), err)
		}
		_, err = introspectionAnswer{Act: []byte(deep)}.principal(authServer, nil)
		if !errors.Is(err, ErrInvalidToken) {
			t.Errorf("too many: got %v", err)
		}
	})
}

// TestTimesThatAreNotSaid: RFC 7662 §2.2. A time that an introspection response omits is zero, not
// 1970.
func TestTimesThatAreNotSaid(t *testing.T) {
	p, err := principalOf(oauth.Introspection{
		Active: true, Issuer: "https://auth.example.com", TokenType: "Bearer", Expires: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !p.IssuedAt.IsZero() || !p.ExpiresAt.Equal(time.Unix(1, 0)) {
		t.Errorf("issued %s, expires %s", p.IssuedAt, p.ExpiresAt)
	}
}
