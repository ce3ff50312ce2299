package sentence_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	english = "{provider} could not be reached: ask {provider}."
	filled  = "{address} could not be reached: ask {address}."
)

// The sentence stays with its error, and only with that one.
func TestErrorCarriesItsSentence(t *testing.T) {
	plain := sentence.NewError(oauth.AccessDenied, english, "unreachable", "provider", "{address}", "address", "x")
	if plain.Code != oauth.AccessDenied || plain.Description != filled {
		t.Errorf("got %s %q", plain.Code, plain.Description)
	}
	if got := plain.Error(); got != "access_denied: "+filled {
		t.Errorf("for the log without a cause: %q", got)
	}
	caused := plain.Because(io.ErrNoProgress).Because(io.ErrUnexpectedEOF)
	if got := caused.Error(); got != "access_denied: "+filled+": unexpected EOF" {
		t.Errorf("for the log: %q", got)
	}
	if !errors.Is(caused, io.ErrUnexpectedEOF) || errors.Is(caused, io.ErrNoProgress) {
		t.Errorf("the causes of %v are wrong", caused)
	}
	for _, e := range []*oauth.Error{plain, caused, oauth.AsError(errors.Join(io.EOF, caused))} {
		s := sentence.Of(e)
		if e != plain && sentence.Cause(e) != io.ErrUnexpectedEOF {
			t.Errorf("the cause is %v", sentence.Cause(e))
		}
		if s.Key() != "refusal.unreachable" || s.String() != filled ||
			!slices.Equal(s.Values(), []any{"provider", "{address}", "address", "x"}) {
			t.Errorf("got %s %q %v", s.Key(), s, s.Values())
		}
	}
	if err := sentence.Cause(plain); err != nil {
		t.Errorf("the cause is %v", err)
	}
	other := oauth.NewError(oauth.InvalidScope, "None of the scopes.")
	if err := sentence.Cause(other.Because(caused)); err != error(caused) {
		t.Errorf("the cause is %v", err)
	}
	for _, e := range []*oauth.Error{other, other.Because(caused), other.Because(io.EOF)} {
		if s := sentence.Of(e); s.Key() != "" || s.String() != other.Description {
			t.Errorf("got %s %q", s.Key(), s)
		}
	}
}

func TestSentence(t *testing.T) {
	if got := sentence.New("Denied.", "denied").With("provider", "Google").Key(); got != "refusal.denied" {
		t.Errorf("got %q", got)
	}
	if got := (sentence.Sentence{}); got.String() != "" || got.Key() != "" || got.Values() != nil {
		t.Errorf("the zero value is %q", got)
	}
}
