package oauth

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseActor(t *testing.T) {
	deep := strings.Repeat(`{"sub":"a","act":`, MaxActors-1) + `{"sub":"a"}` + strings.Repeat("}", MaxActors-1)
	cases := map[string]struct {
		claim string
		want  []Actor
		err   error
	}{
		"nothing":                   {"", nil, nil},
		"null":                      {"null", nil, nil},
		"one":                       {`{"sub":"a","nid":"n","x":1}`, []Actor{{Subject: "a", NodeID: "n"}}, nil},
		"the one that acts first":   {`{"sub":"b","act":{"sub":"a"}}`, []Actor{{Subject: "b"}, {Subject: "a"}}, nil},
		"one that names no sub":     {`{"client_id":"c"}`, []Actor{{ClientID: "c"}}, nil},
		"as many as there may be":   {deep, slicesOf(Actor{Subject: "a"}, MaxActors), nil},
		"one more":                  {`{"sub":"b","act":` + deep + `}`, nil, ErrManyActors},
		"a text":                    {`"a"`, nil, ErrActor},
		"a list":                    {`[{"sub":"a"}]`, nil, ErrActor},
		"a name that is a number":   {`{"sub":1}`, nil, ErrActor},
		"a name that is too long":   {`{"sub":"` + strings.Repeat("a", maxActorText+1) + `"}`, nil, ErrActor},
		"an actor before, no actor": {`{"sub":"a","act":"b"}`, nil, ErrActor},
	}
	for name, c := range cases {
		t.Run("RFC 8693 4.1: "+name, func(t *testing.T) {
			got, err := ParseActor([]byte(c.claim))
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			chain := got.Chain()
			if !reflect.DeepEqual(chain, c.want) {
				t.Errorf("got %+v, want %+v", chain, c.want)
			}
			if back := ChainOf(chain); !reflect.DeepEqual(back, got) {
				t.Errorf("the chain of it is %+v, want %+v", back, got)
			}
		})
	}
}

func slicesOf(a Actor, n int) (out []Actor) {
	for range n {
		out = append(out, a)
	}
	return out
}

func FuzzParseActor(f *testing.F) {
	f.Add([]byte(`{"sub":"b","act":{"sub":"a","nid":"n"}}`))
	f.Add([]byte(`{"sub":1}`))
	f.Fuzz(func(t *testing.T, claim []byte) {
		a, err := ParseActor(claim)
		if err != nil || a == nil {
			return
		}
		again, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := ParseActor(again); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %+v, %v, want %+v", b, err, a)
		}
	})
}
