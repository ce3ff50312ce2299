package storagetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func sharedKeys(t *testing.T, e *env) {
	want := func(name, put, want string) {
		t.Helper()
		var sealed []byte
		if put != "" {
			sealed = []byte(put)
		}
		got, err := e.s.SharedKey(e.ctx, name, sealed)
		check(t, err)
		same(t, string(got), want)
	}
	want("a", "", "")
	wantErr(t, e.s.ReplaceSharedKey(e.ctx, "a", []byte("one"), []byte("two")), storage.ErrSpent)
	want("a", "one", "one")
	want("a", "two", "one")
	want("b", "", "")
	wantErr(t, e.s.ReplaceSharedKey(e.ctx, "a", []byte("two"), []byte("three")), storage.ErrSpent)
	check(t, e.s.ReplaceSharedKey(e.ctx, "a", []byte("one"), []byte("three")))
	want("a", "", "three")
	check(t, e.s.Tend(e.ctx))
}

func raceSharedKey(t *testing.T, e *env) {
	var c tally
	var mu sync.Mutex
	got := map[string]bool{}
	compete(func(i int) {
		key, err := e.s.SharedKey(e.ctx, "key", fmt.Append(nil, i))
		c.add(err)
		mu.Lock()
		defer mu.Unlock()
		got[string(key)] = true
	})
	c.want(t, racers)
	if len(got) != 1 {
		t.Errorf("got %d keys, want one", len(got))
	}
}
