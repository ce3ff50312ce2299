package token

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// says is a validator that records its calls.
type says struct {
	name  string
	err   error
	knows bool
	asked *[]string
}

func (s says) Validate(context.Context, Credential) (*Principal, error) {
	*s.asked = append(*s.asked, s.name)
	if s.err != nil {
		return nil, s.err
	}
	return &Principal{Subject: s.name}, nil
}

func (s says) remembers(string) bool { return s.knows }

func TestAnyOf(t *testing.T) {
	bad, down := Invalid("revoked"), errors.New("dial tcp 10.0.0.7: refused")
	both := errors.Join(ErrUnavailable, ErrInvalidToken)
	for _, tt := range []struct {
		name  string
		v     []says
		asked string
		want  error
	}{
		{"RS-40 in order, until one accepts", []says{{name: "a", err: bad}, {name: "b"}, {name: "c"}}, "a b", nil},
		{"RS-40 one that remembers goes first", []says{{name: "a"}, {name: "b"}, {name: "c", knows: true}}, "c", nil},
		{"RS-40 and the others follow, each once",
			[]says{{name: "a", err: bad}, {name: "b", err: bad, knows: true}, {name: "c"}}, "b a c", nil},
		{"RS-44 an outage before", []says{{name: "a", err: down}, {name: "b", err: bad}}, "a b", ErrUnavailable},
		{"RS-44 an outage behind", []says{{name: "a", err: bad}, {name: "b", err: down}}, "a b", ErrUnavailable},
		{"RS-44 what is both is an outage", []says{{name: "a", err: bad}, {name: "b", err: both}}, "a b",
			ErrUnavailable},
		{"RS-44 an outage of one that is not needed", []says{{name: "a", err: down}, {name: "b"}}, "a b", nil},
		{"RS-40 all refuse", []says{{name: "a", err: bad}, {name: "b", err: bad}}, "a b", ErrInvalidToken},
		{"RS-40 no validator is asked", nil, "", ErrInvalidToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked []string
			var list []Validator
			for _, v := range tt.v {
				v.asked = &asked
				list = append(list, v)
			}
			_, err := AnyOf(AnyOf(list...)).Validate(t.Context(), Credential{Scheme: "Bearer", Token: "t"})
			if !errors.Is(err, tt.want) || strings.Join(asked, " ") != tt.asked {
				t.Errorf("got %v, asked %v", err, asked)
			}
			if tt.want == ErrUnavailable && errors.Is(err, ErrInvalidToken) {
				t.Errorf("an outage would be a 401: %v", err)
			}
			for _, v := range tt.v { // the log should contain the error of each
				if err != nil && !strings.Contains(err.Error(), v.err.Error()) {
					t.Errorf("%q is not in %q", v.err, err)
				}
			}
		})
	}
}
