package mcpclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// issuer counts requests and answers each after a delay.
type issuer struct {
	mu       sync.Mutex // guards the fields below
	asked    []oauth.Scopes
	takes    time.Duration
	lifetime time.Duration
	err      error
	grant    func(oauth.Scopes) oauth.Scopes
}

func (i *issuer) get(ctx context.Context, scopes oauth.Scopes) (*token, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, scopes)
	wait.Advance(i.takes)
	if i.err != nil || ctx.Err() != nil {
		return nil, errors.Join(i.err, ctx.Err())
	}
	t := &token{scopes: scopes}
	if i.grant != nil {
		t.scopes = i.grant(scopes)
	}
	t.live(time.Now(), i.lifetime)
	return t, nil
}

func (i *issuer) times() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.asked)
}

func kept(t *testing.T, i *issuer, what func(t *testing.T, k *keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if i.lifetime == 0 {
			i.lifetime = 15 * time.Minute
		}
		what(t, newKeeper(oauth.Scopes{"mcp"}, i.get))
	})
}

func must(t *testing.T, tok *token, err error) *token {
	t.Helper()
	if err != nil || tok == nil {
		t.Fatalf("got %v, %v", tok, err)
	}
	return tok
}

func TestOneRequestForAll(t *testing.T) {
	i := &issuer{takes: time.Second}
	kept(t, i, func(t *testing.T, k *keeper) {
		left, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 32 {
			all.Go(func() {
				if n == 0 { // the first caller may leave, and the others still get the token
					if _, err := k.Token(left); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					return
				}
				wait.Advance(time.Microsecond)
				if _, err := k.Token(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Advance(time.Millisecond)
		leave()
		all.Wait()
		if got := i.times(); got != 1 {
			t.Errorf("got %d requests, want 1", got)
		}
	})
}

func TestRenewedAhead(t *testing.T) {
	i := &issuer{takes: time.Second}
	kept(t, i, func(t *testing.T, k *keeper) {
		first, err := k.Token(t.Context())
		must(t, first, err)
		wait.Advance(10 * time.Minute) // of the token's 15
		if again, _ := k.Token(t.Context()); again != first || i.times() != 1 {
			t.Error("renewed too early")
		}
		wait.Advance(3 * time.Minute)
		before := time.Now()
		again, err := k.Token(t.Context())
		if must(t, again, err) != first || time.Since(before) != 0 {
			t.Error("a request waits for the renewal")
		}
		wait.Advance(2 * time.Second)
		second, err := k.Token(t.Context())
		if must(t, second, err) == first || i.times() != 2 {
			t.Error("not renewed")
		}
		wait.Advance(time.Hour) // the program was idle
		third, err := k.Token(t.Context())
		if must(t, third, err) == second {
			t.Error("an expired token was given")
		}
	})
}

func TestRenewalSpreads(t *testing.T) {
	at := map[time.Time]bool{}
	now := time.Now()
	for range 20 {
		var one token
		one.live(now, 15*time.Minute)
		at[one.renew] = true
		if one.renew.After(one.expiry) || one.renew.Before(now.Add(10*time.Minute)) {
			t.Errorf("renewed %s before the end", one.expiry.Sub(one.renew))
		}
	}
	if len(at) < 10 {
		t.Errorf("%d different times of 20", len(at))
	}
}

func TestRefusalsAreNotHammered(t *testing.T) {
	i := &issuer{err: fail(stepToken, "", "invalid_grant")}
	kept(t, i, func(t *testing.T, k *keeper) {
		for range 3600 { // one hour, each second
			if _, err := k.Token(t.Context()); !errors.Is(err, i.err) {
				t.Fatalf("CL-29: got %v", err)
			}
			wait.Advance(time.Second)
		}
		if got := i.times(); got < 12 || got > 24 {
			t.Errorf("CL-29: got %d requests in an hour", got)
		}
	})
}

func TestServersThatSayWhen(t *testing.T) {
	i := &issuer{err: &Error{Step: stepToken, Why: "429", temporary: true, after: 2 * time.Minute}}
	kept(t, i, func(t *testing.T, k *keeper) {
		for range 119 {
			if _, err := k.Token(t.Context()); err == nil {
				t.Fatal("got a token")
			}
			wait.Advance(time.Second)
		}
		if got := i.times(); got != 1 {
			t.Errorf("got %d requests before Retry-After was over", got)
		}
		i.err = nil
		wait.Advance(2 * time.Second)
		tok, err := k.Token(t.Context())
		must(t, tok, err)
	})
}

func TestRenewalThatFails(t *testing.T) {
	i := &issuer{}
	kept(t, i, func(t *testing.T, k *keeper) {
		first, err := k.Token(t.Context())
		must(t, first, err)
		i.err = fail(stepToken, "", "invalid_grant")
		wait.Advance(14 * time.Minute)
		for range 3 {
			if tok, err := k.Token(t.Context()); tok != first || err != nil {
				t.Fatalf("a token that is good is not used: %v", err)
			}
			synctest.Wait()
		}
		if got := i.times(); got != 2 {
			t.Errorf("got %d requests, want 2", got)
		}
		wait.Advance(time.Minute)
		if _, err := k.Token(t.Context()); err == nil {
			t.Error("an expired token was given")
		}
	})
}

func TestReplaced(t *testing.T) {
	i := &issuer{}
	kept(t, i, func(t *testing.T, k *keeper) {
		first, err := k.Token(t.Context())
		must(t, first, err)
		second, err := k.replace(t.Context(), first)
		if must(t, second, err) == first {
			t.Fatal("the same token")
		}
		if other, err := k.replace(t.Context(), first); other != second || err != nil {
			t.Error("one refusal replaced two tokens")
		}
		if none, err := k.replace(t.Context(), second); none != nil || err != nil {
			t.Errorf("a token that is new was replaced: %v", err)
		}
		if again, _ := k.Token(t.Context()); again != second || i.times() != 2 {
			t.Errorf("after %d requests", i.times())
		}
		k.accepted(second)
		third, err := k.replace(t.Context(), second)
		must(t, third, err)
	})
}

func TestWidened(t *testing.T) {
	i := &issuer{}
	kept(t, i, func(t *testing.T, k *keeper) {
		first, err := k.Token(t.Context())
		must(t, first, err)
		wide, err := k.widen(t.Context(), first, oauth.Scopes{"write"})
		if got := must(t, wide, err).scopes.String(); got != "mcp write" {
			t.Errorf("CL-20: got %q", got)
		}
		if none, err := k.widen(t.Context(), wide, oauth.Scopes{"write"}); none != nil || err != nil {
			t.Errorf("CL-21: the same again: %v, %v", none, err)
		}
		if other, err := k.widen(t.Context(), first, oauth.Scopes{"write"}); other != wide || err != nil {
			t.Errorf("the token that another request has got: %v, %v", other, err)
		}
		wait.Advance(time.Hour)
		next, err := k.Token(t.Context())
		if got := must(t, next, err).scopes.String(); got != "mcp write" {
			t.Errorf("the next token: got %q", got)
		}
		i.err = fail(stepToken, "", "invalid_scope")
		for range 3 {
			if tok, _ := k.widen(t.Context(), next, oauth.Scopes{"admin"}); tok != nil {
				t.Error("got a token")
			}
		}
		if got := i.times(); got != 4 {
			t.Errorf("CL-29: got %d requests, want 4", got)
		}
		if tok, err := k.Token(t.Context()); tok != next || err != nil {
			t.Error("a refused step-up costs the token that there is")
		}
	})
}

// TestNotWidened: CL-21 an authorization server that grants less than requested is not asked again
// at once.
func TestNotWidened(t *testing.T) {
	i := &issuer{grant: func(oauth.Scopes) oauth.Scopes { return oauth.Scopes{"mcp"} }}
	kept(t, i, func(t *testing.T, k *keeper) {
		tok, err := k.Token(t.Context())
		must(t, tok, err)
		for range 5 {
			if wide, err := k.widen(t.Context(), tok, oauth.Scopes{"write"}); wide != nil || err != nil {
				t.Fatalf("got %v, %v", wide, err)
			}
		}
		if got := i.times(); got != 2 {
			t.Errorf("CL-21: got %d requests, want 2", got)
		}
	})
}
