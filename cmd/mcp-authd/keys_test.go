package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// The script commands that check a running server from outside. Their first argument is its URL.
// The script's configuration contains the client "robot" and its secret.

// eventually waits for an effect on replicas, which takes seconds.
func eventually(ts *testscript.TestScript, what string, f func() error) {
	if err := wait.Retry(wait.Bound, f); err != nil {
		ts.Fatalf("%s: %v", what, err)
	}
}

func scriptReady(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "ready", func() error { _, err := fetch(http.Get(args[0] + "/readyz")); return err })
}

// scriptTells implements tells FILE TEXT: a server writes the text to the file within seconds.
func scriptTells(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args[0], func() error {
		all, err := os.ReadFile(ts.MkAbs(args[0])) // the file may not exist yet
		if err == nil && !strings.Contains(string(all), args[1]) {
			err = errors.New(string(all))
		}
		return err
	})
}

// fetch returns the body of a response with status 200.
func fetch(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// robot posts a form with the client's credentials.
func robot(target string, form url.Values) (map[string]any, error) {
	form.Set("client_id", "robot")
	form.Set("client_secret", "the-secret-of-the-robot-in-the-test")
	body, err := fetch(http.PostForm(target, form))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal([]byte(body), &out)
}

func accessToken(issuer string) (string, error) {
	out, err := robot(issuer+"/token", url.Values{"grant_type": {"client_credentials"}})
	if err != nil {
		return "", err
	}
	return out["access_token"].(string), nil
}

// scriptToken implements token VAR URL: it stores an access token.
func scriptToken(ts *testscript.TestScript, _ bool, args []string) {
	token, err := accessToken(args[1])
	ts.Check(err)
	ts.Setenv(args[0], token)
}

// scriptAccepts implements accepts URL TOKEN: a resource server with freshly fetched keys accepts
// the token.
func scriptAccepts(ts *testscript.TestScript, neg bool, args []string) {
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: args[0]})
	ts.Check(err)
	_, err = v.Validate(context.Background(), mcpresource.Credential{Token: args[1]})
	if neg != errors.Is(err, mcpresource.ErrInvalidToken) || !neg && err != nil {
		ts.Fatalf("the token was judged %v", err)
	}
}

// scriptInactive implements inactive URL TOKEN: introspection reports the token as inactive within
// seconds.
func scriptInactive(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "introspection", func() error {
		out, err := robot(args[0]+"/introspect", url.Values{"token": {args[1]}})
		if err == nil && out["active"] != false {
			err = fmt.Errorf("got %v", out)
		}
		return err
	})
}

// scriptPublished implements published URL KID: within seconds, the key is in the key set, or is
// not.
func scriptPublished(ts *testscript.TestScript, neg bool, args []string) {
	eventually(ts, "key set", func() error {
		body, err := fetch(http.Get(args[0] + "/jwks.json"))
		if err == nil && strings.Contains(body, args[1]) == neg {
			err = errors.New(body)
		}
		return err
	})
}

// scriptSigns implements signs URL KID: the server signs with the key within seconds.
func scriptSigns(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "signature", func() error {
		token, err := accessToken(args[0])
		if err != nil {
			return err
		}
		header, _, _ := strings.Cut(token, ".")
		b, err := base64.RawURLEncoding.DecodeString(header)
		if err == nil && !strings.Contains(string(b), args[1]) {
			err = errors.New(string(b))
		}
		return err
	})
}

// scriptKid implements kid VAR STATE: it stores the ID of the key in a state, from the output of
// keys list --json.
func scriptKid(ts *testscript.TestScript, _ bool, args []string) {
	var all []admin.Key
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	for _, k := range all {
		if k.State == args[1] {
			ts.Setenv(args[0], k.ID)
			return
		}
	}
	ts.Fatalf("no key is %s", args[1])
}
