package mcpresource_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// One client connects twice to an MCP server, as two users: it keeps their tokens by URL.
func ExampleConfig_aliases() {
	const notes, work = "https://mcp.example.com/mcp", "https://mcp.example.com/mcp@work"
	issued := map[string]*mcpresource.Principal{
		"alices-token": {Subject: "alice", Audience: []string{notes}},
		"bobs-token":   {Subject: "bob", Audience: []string{work}},
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             notes,
		Aliases:              []string{work},
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				p := *issued[c.Token]
				p.Issuer, p.ExpiresAt = "https://auth.example.com", time.Now().Add(time.Hour)
				return &p, nil
			}),
	})
	if err != nil {
		panic(err)
	}
	server := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := mcpresource.FromContext(r.Context())
		fmt.Fprintln(w, "notes of", caller.Subject)
	}))
	for _, request := range [][2]string{{notes, "alices-token"}, {work, "bobs-token"}, {work, "alices-token"}} {
		r := httptest.NewRequest("GET", request[0], nil)
		r.Header.Set("Authorization", "Bearer "+request[1])
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code == http.StatusOK {
			fmt.Print(w.Body)
		} else {
			fmt.Println(w.Code, "at", r.URL.Path)
		}
	}
	// Output:
	// notes of alice
	// notes of bob
	// 401 at /mcp@work
}

// Any http.Handler that serves MCP can be behind a guard.
func Example() {
	// With a real server: mcpresource.Discover(ctx, "https://auth.example.com", nil)
	validator := mcpresource.ValidatorFunc(
		func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
			if c.Token != "alices-token" {
				return nil, mcpresource.ErrInvalidToken
			}
			return &mcpresource.Principal{
				Issuer: "https://auth.example.com", Subject: "alice", Scopes: []string{"mcp"},
				Audience: []string{"https://mcp.example.com/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
			}, nil
		})
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "https://mcp.example.com/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator:            validator,
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Tools: map[string][]string{"delete_*": {"files:write"}},
		},
	})
	if err != nil {
		panic(err)
	}
	mcp := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := mcpresource.FromContext(r.Context())
		fmt.Println("handled for", caller.Subject)
	})
	mux := http.NewServeMux()
	guard.Register(mux, mcp)

	for _, authorization := range []string{"", "Bearer alices-token"} {
		r := httptest.NewRequest("GET", "https://mcp.example.com/mcp", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	}
	// Output:
	// 401 Bearer scope="mcp", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	// handled for alice
	// 200
}

// A tool lists the caller's repositories at GitHub, with the caller's own account there. The MCP
// token is only sent to this server and the authorization server.
func ExampleBroker() {
	as := exampleIssuer() // yours: "https://auth.example.com"
	defer as.Close()
	broker, err := mcpresource.NewBroker(mcpresource.BrokerConfig{
		Issuer: as.URL, ClientID: "notes-server", ClientSecret: "its-own-secret",
	})
	if err != nil {
		panic(err)
	}
	tool := func(w http.ResponseWriter, r *http.Request) {
		token, err := broker.Token(r.Context(), "github", "repo")
		var visit *mcpresource.InteractionRequiredError
		if errors.As(err, &visit) { // package gosdk does this for you
			fmt.Println("the person is asked to open", strings.TrimPrefix(visit.URL, as.URL))
			return
		}
		if err != nil {
			http.Error(w, "GitHub cannot be asked now.", http.StatusServiceUnavailable)
			return
		}
		call, _ := http.NewRequestWithContext(r.Context(), "GET", "https://api.github.com/user/repos", nil)
		token.SetAuthHeader(call)
		fmt.Println("GitHub is asked with", call.Header.Get("Authorization"))
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{as.URL},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				return &mcpresource.Principal{
					Issuer: as.URL, Subject: c.Token, Audience: []string{"http://localhost/mcp"},
					ExpiresAt: time.Now().Add(time.Hour)}, nil
			}),
	})
	if err != nil {
		panic(err)
	}
	for _, caller := range []string{"alice", "bob"} {
		r := httptest.NewRequest("GET", "http://localhost/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+caller)
		guard.Protect(http.HandlerFunc(tool)).ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// GitHub is asked with Bearer alices-token-at-github
	// the person is asked to open /connect/7Zq
}

// exampleIssuer is an authorization server where alice has connected GitHub and bob has not.
func exampleIssuer() *httptest.Server {
	mux := http.NewServeMux()
	as := httptest.NewServer(mux)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, as.URL, as.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("subject_token") == "alice" {
			fmt.Fprint(w,
				`{"access_token":"alices-token-at-github","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer"}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":"interaction_required","interaction_uri":%q}`, as.URL+"/connect/7Zq")
	})
	return as
}

// exampleGuard returns a guard that accepts any token and uses it as the user's name.
func exampleGuard(c mcpresource.Config) *mcpresource.Guard {
	c.Resource, c.AuthorizationServers = "https://mcp.example.com/mcp", []string{"https://auth.example.com"}
	c.Validator = mcpresource.ValidatorFunc(
		func(_ context.Context, cred mcpresource.Credential) (*mcpresource.Principal, error) {
			return &mcpresource.Principal{
				Issuer: "https://auth.example.com", Subject: cred.Token, ClientID: "editor", TokenID: "7",
				Scopes:   []string{"mcp"},
				Audience: []string{"https://mcp.example.com/mcp"}, ExpiresAt: time.Now().Add(time.Hour),
			}, nil
		})
	guard, err := mcpresource.New(c)
	if err != nil {
		panic(err)
	}
	return guard
}

// exampleCall calls a tool and prints the response.
func exampleCall(guard *mcpresource.Guard, who, tool, arguments string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`}}`
	r := httptest.NewRequest("POST", "https://mcp.example.com/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+who)
	w := httptest.NewRecorder()
	guard.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	fmt.Println(who, tool, w.Code)
}

// A policy may depend on the arguments.
func ExampleOperation_Args() {
	guard := exampleGuard(mcpresource.Config{Policy: &mcpresource.Rules{
		Refine: func(op mcpresource.Operation, need mcpresource.Requirement) mcpresource.Requirement {
			args, err := op.Args("path")
			path, _ := args["path"].(string)
			if err != nil || strings.HasPrefix(path, "/etc/") {
				need.Scopes = append(need.Scopes, "root")
			}
			return need
		},
	}})
	exampleCall(guard, "alice", "read", `{"path":"/home/alice"}`)
	exampleCall(guard, "alice", "read", `{"path":"/etc/passwd"}`)
	exampleCall(guard, "alice", "read", `{"path":"/home/alice","Path":"/etc/passwd"}`)
	// Output:
	// alice read 200
	// alice read 403
	// alice read 403
}

// Scopes decide which operations a caller may use. Check decides about the objects.
func ExampleConfig_check() {
	owners := map[string]string{"7": "alice"}
	guard := exampleGuard(mcpresource.Config{
		Check: func(_ context.Context, p *mcpresource.Principal, op mcpresource.Operation) error {
			args, err := op.Args("note")
			if note, _ := args["note"].(string); err != nil || owners[note] != p.Subject {
				return errors.New("not theirs")
			}
			return nil
		},
	})
	exampleCall(guard, "alice", "delete_note", `{"note":"7"}`)
	exampleCall(guard, "bob", "delete_note", `{"note":"7"}`)
	// Output:
	// alice delete_note 200
	// bob delete_note 403
}

// An expensive tool has its own rate limit.
func ExampleLimits() {
	guard := exampleGuard(mcpresource.Config{Limits: mcpresource.Limits{
		Calls: mcpresource.Rate{PerSecond: 10},
		Tools: map[string]mcpresource.Rate{"render_*": {PerSecond: 0.1, Burst: 1}},
	}})
	exampleCall(guard, "alice", "render_page", `{}`)
	exampleCall(guard, "alice", "render_page", `{}`)
	exampleCall(guard, "alice", "read", `{}`)
	exampleCall(guard, "bob", "render_page", `{}`)
	// Output:
	// alice render_page 200
	// alice render_page 429
	// alice read 200
	// bob render_page 200
}

// The audit receives each call when it has ended.
func ExampleCallEvent() {
	guard := exampleGuard(mcpresource.Config{
		Policy: &mcpresource.Rules{Tools: map[string][]string{"delete_*": {"write"}}},
		Calls: func(_ context.Context, e mcpresource.CallEvent) {
			fmt.Println(e.Principal.Subject, "by", e.Principal.ClientID, "with token", e.Principal.TokenID, e.Method,
				e.Name, e.Outcome)
		},
	})
	exampleCall(guard, "alice", "read", `{}`)
	exampleCall(guard, "alice", "delete_note", `{}`)
	// Output:
	// alice by editor with token 7 tools/call read ok
	// alice read 200
	// alice by editor with token 7 tools/call delete_note insufficient_scope
	// alice delete_note 403
}

// A client that supports both kinds of token gets two challenges.
func ExampleDPoP() {
	guard := exampleGuard(mcpresource.Config{DPoP: &mcpresource.DPoP{}, FirstScopes: []string{"mcp"}})
	w := httptest.NewRecorder()
	guard.Handler(nil).ServeHTTP(w, httptest.NewRequest("POST", "https://mcp.example.com/mcp", nil))
	for _, challenge := range w.Header().Values("WWW-Authenticate") {
		fmt.Println(strings.ReplaceAll(challenge, ", ", ",\n  "))
	}
	// Output:
	// Bearer scope="mcp",
	//   resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	// DPoP scope="mcp",
	//   algs="ES256 EdDSA ES384 PS256 RS256",
	//   resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
}

// Pages of one origin may call from a browser.
func ExampleConfig_cORS() {
	guard := exampleGuard(mcpresource.Config{Origins: []string{"https://app.example.com"}, CORS: true})
	for _, origin := range []string{"https://app.example.com", "https://evil.example"} {
		r := httptest.NewRequest("OPTIONS", "https://mcp.example.com/mcp", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		w := httptest.NewRecorder()
		guard.Handler(nil).ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Access-Control-Allow-Origin"))
	}
	// Output:
	// 204 https://app.example.com
	// 403
}

// A guard accepts tokens of two authorization servers and introspects those of one.
func ExampleAnyOf() {
	ours, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: "https://auth.example.com"})
	if err != nil {
		panic(err)
	}
	theirs, err := mcpresource.NewIntrospectionValidator(mcpresource.IntrospectionConfig{
		Issuer: "https://login.example.org", ClientID: "mcp", ClientSecret: "from a secret store",
	})
	if err != nil {
		panic(err)
	}
	_, err = mcpresource.New(mcpresource.Config{
		Resource:             "https://mcp.example.com/mcp",
		AuthorizationServers: []string{"https://auth.example.com", "https://login.example.org"},
		Validator:            mcpresource.AnyOf(ours, theirs),
	})
	fmt.Println(err)
	// Output: <nil>
}

// A task continues after its request has ended, and calls Recheck before each step.
func ExampleGuard_Recheck() {
	guard := exampleGuard(mcpresource.Config{})
	step := mcpresource.Operation{Method: "tools/call", Name: "build"}
	done := make(chan error)
	h := guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		task := context.WithoutCancel(r.Context())
		go func() { done <- guard.Recheck(task, step) }()
		w.WriteHeader(http.StatusAccepted)
	}))
	r := httptest.NewRequest("POST", "https://mcp.example.com/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}`))
	r.Header.Set("Authorization", "Bearer alice")
	h.ServeHTTP(httptest.NewRecorder(), r)
	fmt.Println(<-done)
	// Output: <nil>
}

// An agent delegates less of its access to a sub-agent, whose token names it. Only the agent itself
// may send money.
func ExamplePrincipal_Actors() {
	issued := map[string]string{
		"agents-token":  `{}`,
		"helpers-token": `{"act": {"sub": "reader", "nid": "nod_1"}}`,
	}
	guard, err := mcpresource.New(mcpresource.Config{
		Resource:             "https://mcp.example.com/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Validator: mcpresource.ValidatorFunc(
			func(_ context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
				return &mcpresource.Principal{
					Issuer:    "https://auth.example.com",
					Subject:   "alice",
					Audience:  []string{"https://mcp.example.com/mcp"},
					ExpiresAt: time.Now().Add(time.Hour),
					Claims:    []byte(issued[c.Token]),
				}, nil
			}),
		Policy: &mcpresource.Rules{Direct: []string{"send_money"}},
	})
	if err != nil {
		panic(err)
	}
	server := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := mcpresource.FromContext(r.Context())
		fmt.Fprint(w, "for ", caller.Subject)
		for _, a := range caller.Actors() {
			fmt.Fprint(w, ", by ", a.Name())
		}
	}))
	for _, call := range [][2]string{
		{"agents-token", "send_money"}, {"helpers-token", "read_mail"}, {"helpers-token", "send_money"},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + call[1] + `"}}`
		r := httptest.NewRequest("POST", "https://mcp.example.com/mcp", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+call[0])
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code == http.StatusOK {
			fmt.Println(call[1], w.Body)
		} else {
			fmt.Println(call[1], w.Code)
		}
	}
	// Output:
	// send_money for alice
	// read_mail for alice, by reader
	// send_money 403
}
