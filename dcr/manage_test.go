package dcr_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const endpoint = "https://auth.example.com/register"

func managing(c *dcr.Config) { c.Endpoint = endpoint }

// configure sends a request to the client configuration endpoint through a mux.
func (r *rig) configure(method, id, token, body string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	mux.Handle("/register/{client}", r)
	req := httptest.NewRequest(method, "/register/"+id, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, req)
	return w
}

func text(v any) string { s, _ := v.(string); return s }

func TestManage(t *testing.T) {
	r := newRig(t, managing)
	made := r.register(t,
		`{`+loopback+`,"client_name":"Old","token_endpoint_auth_method":"client_secret_basic","software_id":"s"}`)
	id, token, secret := text(made["client_id"]), text(made["registration_access_token"]), text(made["client_secret"])
	t.Run("AS-149 RFC 7592 3: the place and the token come with the registration", func(t *testing.T) {
		if made["registration_client_uri"] != endpoint+"/"+id || len(token) < 40 {
			t.Errorf("got %v", made)
		}
	})
	t.Run("AS-149 only where it is offered", func(t *testing.T) {
		if out := newRig(t).register(t, `{`+loopback+`}`); out["registration_client_uri"] != nil ||
			out["registration_access_token"] != nil {
			t.Errorf("got %v", out)
		}
	})
	t.Run("AS-145 a deletion that leaves a permanent row costs as much as one", func(t *testing.T) {
		r := newRig(t, managing, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1, Burst: 25} })
		var codes []int
		for range 3 {
			made := r.register(t, `{`+loopback+`}`)
			codes = append(codes,
				r.configure("DELETE", text(made["client_id"]), text(made["registration_access_token"]), "").Code)
		}
		if !slices.Equal(codes, []int{204, 204, 429}) {
			t.Errorf("got %d", codes)
		}
	})
	t.Run("AS-150 read", func(t *testing.T) {
		w := r.configure("GET", id, token, "")
		out := decode(t, w.Body.Bytes())
		if w.Code != 200 || out["client_name"] != "Old" || out["client_id"] != id || out["software_id"] != "s" ||
			out["registration_access_token"] != token || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	for name, tt := range map[string]struct{ id, token string }{
		"no token": {id, ""}, "another token": {id, "mcpra_x"},
		"the token of another client": {id, text(r.register(t, `{`+loopback+`}`)["registration_access_token"])},
		"a client that never was":     {"mcp_nobody", token}, "the secret": {id, secret},
		"an endless id": {strings.Repeat("a", 600), token},
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			t.Run("AS-150 refused: "+name+" "+method, func(t *testing.T) {
				w := r.configure(method, tt.id, tt.token, `{}`)
				if w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
	}
	t.Run("AS-150 another method is 405", func(t *testing.T) {
		if w := r.configure("PATCH", id, token, `{}`); w.Code != 405 ||
			w.Header().Get("Allow") != "DELETE, GET, PUT, OPTIONS" {
			t.Errorf("got %d %q", w.Code, w.Header().Get("Allow"))
		}
	})
	for name, body := range map[string]string{
		"no client_id":          `{` + loopback + `}`,
		"another client_id":     `{"client_id":"mcp_x",` + loopback + `}`,
		"another secret":        fmt.Sprintf(`{"client_id":%q,"client_secret":"x",%s}`, id, loopback),
		"a token of its own":    fmt.Sprintf(`{"client_id":%q,"registration_access_token":%q,%s}`, id, token, loopback),
		"its issue":             fmt.Sprintf(`{"client_id":%q,"client_id_issued_at":1,%s}`, id, loopback),
		"a bad redirect URI":    fmt.Sprintf(`{"client_id":%q,"redirect_uris":["http://evil.example/"]}`, id),
		"no redirect URI":       fmt.Sprintf(`{"client_id":%q}`, id),
		"something that is not": `[]`,
	} {
		t.Run("AS-150 RFC 7592 2.2: an update is refused with "+name, func(t *testing.T) {
			if w := r.configure("PUT", id, token, body); w.Code != 400 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if r.store.size(t) != 0 {
				t.Error("something was stored")
			}
		})
	}
	t.Run("AS-150 an update replaces everything, and keeps the secret", func(t *testing.T) {
		body := fmt.Sprintf(
			`{"client_id":%q,"client_secret":%q,"redirect_uris":["https://new.example/cb"],"client_name":"New","token_endpoint_auth_method":"client_secret_post"}`,
			id, secret,
		)
		w := r.configure("PUT", id, token, body)
		out := decode(t, w.Body.Bytes())
		if w.Code != 200 || out["client_name"] != "New" || out["software_id"] != nil || out["client_secret"] != nil {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		c, err := r.Client(t.Context(), id)
		if err != nil || c.RedirectURIs[0] != "https://new.example/cb" || c.SecretHash == nil ||
			c.Source != storage.SourceManaged {
			t.Errorf("got %+v, %v", c, err)
		}
	})
	t.Run("AS-150 a client that becomes public has no secret; confidential again, a new one", func(t *testing.T) {
		w := r.configure("PUT", id, token, fmt.Sprintf(`{"client_id":%q,%s}`, id, loopback))
		if c, err := r.Client(t.Context(), id); w.Code != 200 || err != nil || !c.Public() || c.SecretHash != nil {
			t.Fatalf("got %d %s, %+v, %v", w.Code, w.Body, c, err)
		}
		w = r.configure("PUT", id, token,
			fmt.Sprintf(`{"client_id":%q,"token_endpoint_auth_method":"client_secret_basic",%s}`, id, loopback))
		if out := decode(t, w.Body.Bytes()); text(out["client_secret"]) == "" || text(out["client_secret"]) == secret {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
	t.Run("AS-150 deleted: 204, and then the client is unknown", func(t *testing.T) {
		r.pass(time.Minute) // the updates have used up the allowance
		if w := r.configure("DELETE", id, token, ""); w.Code != 204 || w.Body.Len() != 0 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		if _, err := r.Client(t.Context(), id); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("got %v", err)
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if w := r.configure(method, id, token, `{}`); w.Code != 401 {
				t.Errorf("%s: got %d", method, w.Code)
			}
		}
	})
	t.Run("the operator's clients are not theirs to change", func(t *testing.T) {
		other := r.register(t, `{`+loopback+`}`)
		id := text(other["client_id"])
		if err := r.store.PutClient(t.Context(),
			storage.Client{ID: id, Source: storage.SourceStatic, AuthMethod: "none", CreatedAt: epoch}); err != nil {
			t.Fatal(err)
		}
		if w := r.configure("DELETE", id, text(other["registration_access_token"]), ""); w.Code != 401 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("SP-28 no token is logged", func(t *testing.T) {
		if strings.Contains(r.log.String(), token[6:]) || strings.Contains(r.log.String(), secret) {
			t.Error("the log has one")
		}
	})
}

func TestManagementSurvives(t *testing.T) {
	before := newRig(t, managing)
	made := before.register(t, `{`+loopback+`}`)
	after := newRig(t, managing, func(c *dcr.Config) { c.SecretKeys = [][]byte{master2, master} })
	if w := after.configure("GET", text(made["client_id"]), text(made["registration_access_token"]),
		""); w.Code != 200 {
		t.Errorf("with an empty database and a new primary key: got %d %s", w.Code, w.Body)
	}
	stranger := newRig(t, managing, func(c *dcr.Config) { c.SecretKeys = [][]byte{master2} })
	if w := stranger.configure("GET", text(made["client_id"]), text(made["registration_access_token"]),
		""); w.Code != 401 {
		t.Errorf("with another key: got %d", w.Code)
	}
}

// TestManagementOfALostRow: AS-150. A client can lose its row through a sweep or a lost database.
// The answer says that it is no longer registered and must not retry.
func TestManagementOfALostRow(t *testing.T) {
	made := newRig(t, managing).register(t, long)
	id, token := text(made["client_id"]), text(made["registration_access_token"])
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		w := newRig(t, managing).configure(method, id, token, `{}`)
		if w.Code != 401 || !strings.Contains(w.Body.String(), `"invalid_token"`) ||
			w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: got %d %s", method, w.Code, w.Body)
		}
	}
}

// RFC 8037 appendix A.2
const edKey = `{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`

func TestRegisterKeys(t *testing.T) {
	const method = `"token_endpoint_auth_method":"private_key_jwt",`
	for name, tt := range map[string]struct {
		keys string
		ok   bool
	}{
		"AS-123 a key set":        {`"jwks":{"keys":[` + edKey + `]}`, true},
		"AS-123 the place of one": {`"jwks_uri":"https://app.example.com/jwks"`, true},
		"AS-143 both": {
			`"jwks_uri":"https://app.example.com/jwks","jwks":{"keys":[` + edKey + `]}`, false,
		},
		"AS-130 neither":                   {`"client_name":"x"`, false},
		"AS-143 a place that is not https": {`"jwks_uri":"http://app.example.com/jwks"`, false},
		"AS-143 a place with a user":       {`"jwks_uri":"https://u@app.example.com/jwks"`, false},
		"AS-130 an empty set":              {`"jwks":{"keys":[]}`, false},
		"AS-130 no set":                    {`"jwks":{}`, false},
		"AS-130 a private key": {
			`"jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
			false,
		},
		"AS-130 a private key of a kind we do not know": {
			`"jwks":{"keys":[` + edKey + `,{"kty":"new","d":"x"}]}`, false,
		},
		"AS-130 a symmetric key": {`"jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}`, false},
		"AS-130 keys for encryption only": {
			`"jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","use":"enc","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
			false,
		},
		"AS-130 a short RSA key": {
			`"jwks":{"keys":[{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("q", 86) + `"}]}`, false,
		},
		"AS-130 one we know beside one we do not": {`"jwks":{"keys":[{"kty":"new"},` + edKey + `]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			w := r.send("POST", `{`+loopback+`,`+method+tt.keys+`}`)
			if (w.Code == 201) != tt.ok ||
				w.Code != 201 && !strings.Contains(w.Body.String(), "invalid_client_metadata") {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if !tt.ok {
				return
			}
			out := decode(t, w.Body.Bytes())
			c, err := r.Client(t.Context(), text(out["client_id"]))
			if err != nil || c.AuthMethod != "private_key_jwt" || c.JWKS == nil && c.JWKSURI == "" ||
				out["client_secret"] != nil || out["jwks"] == nil && out["jwks_uri"] == nil {
				t.Errorf("got %+v, %v, answer %s", c, err, w.Body)
			}
			if r.store.size(t) != 0 {
				t.Error("a set of this size has room in the id")
			}
		})
	}
}

func TestClientKeys(t *testing.T) {
	sets, fetches := `{"keys":[`+edKey+`]}`, 0
	status := 200
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches++
		w.WriteHeader(status)
		fmt.Fprint(w, sets)
	}))
	defer site.Close()
	r := newRig(t, func(c *dcr.Config) { c.Documents = dcr.Documents{InsecureLoopback: true} })
	c := storage.Client{ID: "x", AuthMethod: "private_key_jwt", JWKSURI: site.URL + "/jwks"}
	want := func(step, kid string, keys, asked int) {
		t.Helper()
		got, err := r.ClientKeys(t.Context(), c, kid)
		if len(got) != keys || fetches != asked || (err != nil) != (keys < 0) {
			t.Errorf("%s: got %d keys, %v, after %d fetches; want %d after %d", step, len(got), err, fetches, keys,
				asked)
		}
	}
	want("AS-143 fetched once", "k", 1, 1)
	want("kept", "k", 1, 1)
	want("any key id", "", 1, 1)
	want("an unknown key id is not looked for at once", "new", 0, 1)
	r.pass(31 * time.Second)
	sets = `{"keys":[` + strings.Replace(edKey, `"k"`, `"new"`, 1) + `]}`
	want("AS-130 but soon: keys can be changed", "new", 1, 2)
	status = 500
	r.pass(time.Hour)
	want("an outage of the site ends no session", "new", 1, 3)
	t.Run("AS-161 a key set inside is not fetched", func(t *testing.T) {
		r := newRig(t)
		for range 2 { // also from the cache
			_, err := r.ClientKeys(t.Context(), c, "k")
			if oauth.AsError(err).Code != oauth.InvalidClient || fetches != 3 {
				t.Errorf("RU-20: got %v, %d fetches", err, fetches)
			}
		}
	})
}

func TestKeysOfTheOperatorsClients(t *testing.T) {
	site := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[`+edKey+`]}`) }),
	)
	defer site.Close()
	r := newRig(t, func(c *dcr.Config) { c.Documents = dcr.Documents{InsecureLoopback: true} })
	keys := func(source storage.ClientSource, place string) int {
		got, _ := r.ClientKeys(t.Context(),
			storage.Client{ID: "x", AuthMethod: "private_key_jwt", JWKSURI: site.URL + place, Source: source}, "k")
		return len(got)
	}
	fetched := 0
	for i := range 100 {
		fetched += keys(storage.SourceDynamic, fmt.Sprint("/stranger", i))
	}
	if fetched == 100 {
		t.Error("AS-143 strangers have fetches without end")
	}
	t.Run("L1 a client that a person has approved is not starved by those that no person has", func(t *testing.T) {
		c := storage.Client{
			ID: "approved", AuthMethod: "private_key_jwt", JWKSURI: site.URL + "/approved",
			Source: storage.SourceDynamic, CreatedAt: r.now,
		}
		if got, _ := r.ClientKeys(t.Context(), c, "k"); len(got) != 0 {
			t.Error("before the approval it made fetches")
		}
		row := c
		row.LastUsedAt = r.now
		if err := r.store.PutClient(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ClientKeys(t.Context(), c, "k"); len(got) != 1 {
			t.Errorf("got %d keys, %v", len(got), err)
		}
	})
	if keys(storage.SourceStatic, "/operator") != 1 {
		t.Error("AS-143 clients that registered themselves have used up the fetches that a client of the operator needs")
	}
}

func TestSharedNetworks(t *testing.T) {
	from := "192.0.2.1"
	r := newRig(t, func(c *dcr.Config) {
		c.Limits = dcr.Limits{PerMinute: 1, Burst: 2, Shared: []netip.Prefix{netip.MustParsePrefix("160.79.104.0/21")}}
		c.ClientAddr = func(*http.Request) netip.Addr { return netip.MustParseAddr(from) }
	})
	count := func(address string) (n int) {
		from = address
		for r.send("POST", `{`+loopback+`}`).Code == 201 {
			n++
		}
		return n
	}
	if n := count("192.0.2.1"); n != 2 {
		t.Errorf("AS-144: anybody: got %d", n)
	}
	if n := count("160.79.105.7"); n != 40 {
		t.Errorf("AS-144: the egress of a hosted client: got %d", n)
	}
	if n := count("160.79.111.200"); n != 0 {
		t.Errorf("AS-144: one network, whatever the address: got %d", n)
	}
}

func TestMachineClients(t *testing.T) {
	r := newRig(t, func(c *dcr.Config) { c.MachineClients = true })
	const machine = `"grant_types":["client_credentials"],"token_endpoint_auth_method":"client_secret_basic"`
	if out := r.register(t, `{`+machine+`}`); fmt.Sprint(out["grant_types"]) != "[client_credentials]" ||
		out["client_secret"] == nil || out["response_types"] != nil || out["redirect_uris"] != nil {
		t.Errorf("AS-178 where policy allows it: got %v", out)
	}
	for name, body := range map[string]string{
		"a public client": `{"grant_types":["client_credentials"]}`, "nothing known": `{"grant_types":["password"]}`,
	} {
		if w := r.send("POST", body); w.Code != 400 {
			t.Errorf("AS-173 %s: got %d %s", name, w.Code, w.Body)
		}
	}
	if w := newRig(t).send("POST", `{`+machine+`}`); w.Code != 400 {
		t.Errorf("AS-178 by default: got %d", w.Code)
	}
}

func TestTenThousandRegistrations(t *testing.T) {
	r := newRig(t, managing, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1e9, Burst: 1e9} })
	for i := range 10_000 {
		r.register(t,
			fmt.Sprintf(
				`{"client_name":"Client %d","redirect_uris":["http://localhost:%d/callback"],"token_endpoint_auth_method":"none"}`,
				i, 10000+i,
			))
	}
	if n := r.store.size(t); n != 0 {
		t.Errorf("AS-145: %d rows", n)
	}
}
