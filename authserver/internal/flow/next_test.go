package flow

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestNext(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	resource := storage.Resource{Scopes: []storage.ScopeText{{Name: "mcp", Default: true}, {Name: "write"}}}
	request := func(scope string, prompt ...string) Request {
		return Request{
			Resource: policy.Resolution{Resource: resource}, Scopes: oauth.ParseScopes(scope), Prompt: prompt,
			MaxAge: -1,
		}
	}
	visit := func(consented oauth.Scopes, age time.Duration) *storage.Visit {
		return &storage.Visit{
			Session: storage.Session{AuthTime: now.Add(-age)}, User: storage.User{Name: "alice"},
			Consented: consented, Known: consented != nil,
		}
	}
	document := func(method, redirect string, prompt ...string) Request {
		a := request("mcp", prompt...)
		a.Client = storage.Client{ID: "https://c.example/id", Source: storage.SourceCIMD, AuthMethod: method}
		a.RedirectURI = redirect
		return a
	}
	hinted := func(name string) Request {
		a := request("mcp")
		a.LoginHint = name
		return a
	}
	atAlias := func(prompt ...string) Request {
		a := request("mcp", prompt...)
		a.Resource.AliasOf = "https://mcp.example.com/mcp"
		return a
	}
	chosen := atAlias()
	chosen.Chosen = true
	stale := request("mcp")
	stale.MaxAge = time.Minute
	fresh := request("mcp")
	fresh.MaxAge = 0
	plain := request("")
	plain.Resource = policy.Resolution{}
	operated := document("none", "http://127.0.0.1:6666/cb")
	operated.Client.Source = storage.SourceStatic
	decades := request("mcp")
	decades.MaxAge = math.MaxInt64
	for _, tt := range []struct {
		name string
		a    Request
		v    *storage.Visit
		want Step // compared by type
		code oauth.Code
	}{
		{"AS-39 no person signed in", request("mcp"), nil, SignInStep{entry.Login{}}, ""},
		{"AS-70 signed in, never asked", request("mcp"), visit(nil, 0), AskConsent{}, ""},
		{"AS-74 consented", request("mcp"), visit(oauth.Scopes{"mcp"}, time.Hour), issue{}, ""},
		{"AS-70 a resource without scopes, never asked", plain, visit(nil, 0), AskConsent{}, ""},
		{"AS-74 a resource without scopes, consented", plain, visit(oauth.Scopes{}, 0), issue{}, ""},
		{"OIDC 3.1.2.1 max_age=0 asks for a sign-in, however recent the last", fresh,
			visit(oauth.Scopes{"mcp"}, time.Second), SignInStep{entry.Login{}}, ""},
		{"M2 RFC 8252 8.6: a public client of the operator on loopback could be anybody", operated,
			visit(oauth.Scopes{"mcp"}, 0), AskConsent{}, ""},
		{"AS-114 more scopes ask again", request("mcp write"), visit(oauth.Scopes{"mcp"}, 0), AskConsent{}, ""},
		{"OIDC 3.1.2.1 prompt=login", request("mcp", "login"), visit(oauth.Scopes{"mcp"}, 0),
			SignInStep{entry.Login{}}, ""},
		{"OIDC 3.1.2.1 prompt=consent", request("mcp", "consent"), visit(oauth.Scopes{"mcp"}, 0), AskConsent{}, ""},
		{"OIDC 3.1.2.1 prompt=select_account shows who is signed in", request("mcp", "select_account"),
			visit(oauth.Scopes{"mcp"}, 0), ChooseAccount{}, ""},
		{"OIDC 3.1.2.1 prompt=select_account none", request("mcp", "select_account", "none"),
			visit(oauth.Scopes{"mcp"}, 0), Stop{}, oauth.LoginRequired},
		{"AS-239 login_hint names another person", hinted("bob"), visit(oauth.Scopes{"mcp"}, 0), ChooseAccount{}, ""},
		{"AS-239 login_hint names this person", hinted("ALICE"), visit(oauth.Scopes{"mcp"}, 0), issue{}, ""},
		{"AS-239 first at an alias, as whoever is signed in", atAlias(), visit(nil, 0), ChooseAccount{}, ""},
		{"AS-239 an account was chosen for the alias", chosen, visit(nil, 0), AskConsent{}, ""},
		{"AS-239 allowed at the alias before", atAlias(), visit(oauth.Scopes{"mcp"}, 0), issue{}, ""},
		{"AS-239 not silently", atAlias("none"), visit(nil, 0), Stop{}, oauth.ConsentRequired},
		{"OIDC 3.1.2.1 max_age passed", stale, visit(oauth.Scopes{"mcp"}, time.Hour), SignInStep{entry.Login{}}, ""},
		{"PM5 OIDC 3.1.2.1 max_age of a session of unknown age", decades,
			&storage.Visit{Consented: oauth.Scopes{"mcp"}}, SignInStep{entry.Login{}}, ""},
		{"PM5 ... which counts without max_age", request("mcp"), &storage.Visit{Consented: oauth.Scopes{"mcp"}},
			issue{}, ""},
		{"OIDC 3.1.2.1 max_age kept", stale, visit(oauth.Scopes{"mcp"}, time.Second), issue{}, ""},
		{"OIDC 3.1.2.6 prompt=none, no person", request("mcp", "none"), nil, Stop{}, oauth.LoginRequired},
		{"OIDC 3.1.2.6 prompt=none, not consented", request("mcp", "none"), visit(nil, 0), Stop{},
			oauth.ConsentRequired},
		{"SP-27 RFC 8252 8.6: a public document on loopback could be anybody",
			document("none", "http://127.0.0.1:6666/cb"), visit(oauth.Scopes{"mcp"}, 0), AskConsent{}, ""},
		{"SP-27 RFC 8252 8.6: and by a private-use scheme", document("none", "claude://cb"),
			visit(oauth.Scopes{"mcp"}, 0), AskConsent{}, ""},
		{"SP-27 RFC 8252 8.6: and not silently", document("none", "http://localhost/cb", "none"),
			visit(oauth.Scopes{"mcp"}, 0), Stop{}, oauth.ConsentRequired},
		{"AS-74 a document on https gets its answer itself", document("none", "https://c.example/cb"),
			visit(oauth.Scopes{"mcp"}, 0), issue{}, ""},
		{"AS-74 a document with keys proves itself", document("private_key_jwt", "http://127.0.0.1/cb"),
			visit(oauth.Scopes{"mcp"}, 0), issue{}, ""},
		{"OIDC 3.1.2.6 prompt=none, consented", request("mcp", "none"), visit(oauth.Scopes{"mcp"}, 0), issue{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, code := Next(Valid{Request: tt.a, Visit: tt.v}, now), oauth.Code("")
			switch refused := got.(type) {
			case RespondError: // the user has approved this redirect URI
				got, code = Stop{}, oauth.AsError(refused.Err).Code
			case Stop:
				code = oauth.AsError(refused.Err).Code
			}
			if kind(got) != kind(tt.want) {
				t.Errorf("got %v, want %v", kind(got), kind(tt.want))
			}
			if code != tt.code {
				t.Errorf("got %q, want %q", code, tt.code)
			}
		})
	}
}

// kind returns the type of a step, or the type of its inner step for a SignInStep.
func kind(step Step) reflect.Type {
	if enter, ok := step.(SignInStep); ok {
		return reflect.TypeOf(enter.Step)
	}
	return reflect.TypeOf(step)
}

func TestMayRedirectErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    storage.ClientSource
		v    *storage.Visit
		want bool
	}{
		{"AS-60 a self-registered client, no person signed in", storage.SourceDynamic, nil, false},
		{"AS-60 a self-registered client this person never allowed", storage.SourceDynamic, &storage.Visit{}, false},
		{"AS-41 one this person has allowed", storage.SourceDynamic, &storage.Visit{Known: true}, true},
		{"AS-41 a client of the operator", storage.SourceStatic, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			step := Next(Invalid{To: Identified{Client: storage.Client{Source: tt.c}}, Visit: tt.v}, time.Time{})
			if _, got := step.(RespondError); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
