package mcpresource

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestRefusedURI: a URI that is not canonical is refused before any table lookup; see package
// message.
func TestRefusedURI(t *testing.T) {
	t.Run("RS-194 by HTTP it is 400 and -32602 with the id, before the table", func(t *testing.T) {
		r := newRig(t, nil)
		for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
			w := r.call("admin",
				`{"jsonrpc":"2.0","id":9,"method":"`+method+`","params":{"uri":"file:///public/%2e%2E/private/x"}}`)
			if w.Code != 400 || !strings.Contains(w.Body.String(), `"id":9,"error":{"code":-32602`) ||
				len(r.seen) != 0 {
				t.Errorf("%s: got %d %s", method, w.Code, w.Body)
			}
		}
		if w := r.call("admin",
			`[`+tool("read")+
				`,{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"file:///public/.."}}]`); w.Code != 400 {
			t.Errorf("in a batch: got %d", w.Code)
		}
		if err := r.Authorize(NewContext(t.Context(), people(r.now)["alice"]),
			Operation{Method: "resources/read", Name: "file:///public/../x"}); !errors.Is(err, ErrResourceURI) {
			t.Errorf("Authorize: got %v", err)
		}
	})
	t.Run("RS-195 the host of any scheme is matched in any case", func(t *testing.T) {
		rules := &Rules{
			Resources: map[string][]string{
				"repo://private/*": {"admin"}, "repo://MyOrg/*": {"org"}, "repo://myorg/a": {"one"},
				"repo://*": {"any"},
			},
		}
		for uri, want := range map[string]string{
			"repo://private/x": "admin", "repo://PRIVATE/x": "admin", "repo://myorg/x": "org",
			"repo://MyOrg/x": "org", "repo://MYORG/a": "one", "repo://MyOrg/A": "org", "repo://other/x": "any",
		} {
			if got := rules.Require(Operation{Method: "resources/read", Name: uri}); strings.Join(got.Scopes,
				" ") != want {
				t.Errorf("%s: got %v, want %s", uri, got.Scopes, want)
			}
		}
		rules.Resources = map[string][]string{"repo://Both/*": {"one"}, "repo://both/*": {"two"}}
		if got := oauth.Scopes(
			rules.Require(Operation{Method: "resources/read", Name: "repo://both/x"}).Scopes); !got.Has("one", "two") {
			t.Errorf("keys that differ in case alone: got %v, want the scopes of both", got)
		}
	})
}

// TestImplied: an indirect way to a prompt or resource requires the scopes of direct access.
func TestImplied(t *testing.T) {
	r := newRig(t, nil)
	complete := func(ref string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":` + ref +
			`,"argument":{"name":"a","value":""}}}`
	}
	listen := func(notifications string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":` + notifications +
			`}}`
	}
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"RS-190 completion of a prompt that may be got", complete(`{"type":"ref/prompt","name":"hello"}`), 200},
		{"RS-190 completion of another prompt", complete(`{"type":"ref/prompt","name":"secret"}`), 403},
		{"RS-190 completion of a resource that may be read",
			complete(`{"type":"ref/resource","uri":"file:///public/{name}"}`), 200},
		{"RS-190 completion of another resource", complete(`{"type":"ref/resource","uri":"file:///private/{name}"}`),
			403},
		{"RS-190 each of two", complete(`{"type":"ref/prompt","name":"hello","uri":"file:///private/x"}`), 403},
		{"RS-190 no type helps", complete(`{"name":"secret"}`), 403},
		{"RS-194 completion by another spelling",
			complete(`{"type":"ref/resource","uri":"file:///public/../private/{name}"}`), 400},
		{"RS-103 a ref that decoders read differently",
			complete(`{"type":"ref/prompt","name":"hello","Name":"secret"}`), 400},
		{"RS-103 a ref in another case",
			`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"Ref":{"type":"ref/prompt","name":"secret"}}}`,
			400},
		{"RS-103 a ref that is no object", complete(`"secret"`), 400},
		{"RS-190 in a batch", `[` + tool("read") + `,` + complete(`{"type":"ref/prompt","name":"secret"}`) + `]`, 403},
		{"RS-195 listening to lists", listen(`{"toolsListChanged":true}`), 200},
		{"RS-195 listening to a resource that may be read",
			listen(`{"resourceSubscriptions":["file:///public/a","file:///public/b"]}`), 200},
		{"RS-195 listening to another one among them",
			listen(`{"resourceSubscriptions":["file:///public/a","file:///private/x"]}`), 403},
		{"RS-194 listening by another spelling", listen(`{"resourceSubscriptions":["file:///public/../private/x"]}`),
			400},
		{"RS-103 in another case", listen(`{"ResourceSubscriptions":["file:///private/x"]}`), 400},
		{"RS-132 tasks in another case", listen(`{"taskids":["x"]}`), 400},
		{"RS-132 tasks by a letter that folds into another", listen(`{"taskIds":["x"],"ta\u017fkIds":["y"]}`), 400},
		{"RS-103 not strings", listen(`{"resourceSubscriptions":[7]}`), 400},
		{"RS-103 not an array", listen(`{"resourceSubscriptions":"file:///private/x"}`), 400},
		{"RS-103 notifications in another case",
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"Notifications":{"resourceSubscriptions":["file:///private/x"]}}}`,
			400},
		{"RS-196 beyond any need",
			listen(`{"resourceSubscriptions":["file:///public/a"` + strings.Repeat(`,"file:///public/a"`, 1000) +
				`]}`), 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(r.seen)
			if w := r.call("alice", tt.body); w.Code != tt.status || (len(r.seen) > before) != (tt.status == 200) {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
		})
	}
	t.Run("SP-07 the event names what it amounts to", func(t *testing.T) {
		r.events = nil
		r.call("alice", listen(`{"resourceSubscriptions":["file:///public/a"]}`))
		if ops := r.events[0].Operations; len(ops) != 2 || ops[0].Method != "subscriptions/listen" ||
			ops[1].Method != "resources/subscribe" || ops[1].Name != "file:///public/a" {
			t.Errorf("got %+v", ops)
		}
	})
}

// TestResourceSpellings: a rule applies to a resource in every spelling of its URI.
func TestResourceSpellings(t *testing.T) {
	rules := &Rules{
		Default: []string{"unlisted"},
		Resources: map[string][]string{
			"*": {}, "x://h/My Docs/*": {"docs"}, "x://h/a%2Cb": {"comma"}, "x://only/a": {},
		},
		DenyResources: []string{
			"*Internal*", "file:///~root/*", "x://h/no,no", "x://h/Ü*", "x://h/so%2Cso", "x://h/No%20Go/*",
		},
	}
	for uri, want := range map[string]string{
		"db://Internal/1": "deny", "db://internal/1": "deny", "x://h/Internal": "deny", "file:///~root/x": "deny",
		"file:///%7Eroot/x": "deny", "file:///%7eroot/x": "deny",
		"x://h/no,no": "deny", "x://h/no%2Cno": "deny", "x://h/no%2cno": "deny", "x://h/%C3%9Cber": "deny",
		"x://h/Über": "deny", "x://h/yes": "",
		"x://h/My%20Docs/1": "docs", "x://h/My Docs/1": "docs", "x://h/a%2Cb": "comma", "x://h/a,b": "comma",
		"x://h/so,so": "deny", "x://h/No Go/1": "deny",
	} {
		t.Run("RS-194 "+uri, func(t *testing.T) {
			need := rules.Require(Operation{Method: "resources/read", Name: uri})
			if got := strings.Join(need.Scopes, " "); need.Deny != (want == "deny") || !need.Deny && got != want {
				t.Errorf("got %+v, want %q", need, want)
			}
		})
	}
	t.Run("RS-194 each spelling has to be let pass", func(t *testing.T) {
		rules := &Rules{Default: []string{"unlisted"}, Resources: map[string][]string{"http://h/public/*": {}}}
		if got := rules.Require(Operation{Method: "resources/read", Name: "http://h/public%2Fsecret"}); len(
			got.Scopes) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}
