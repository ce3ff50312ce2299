package grant

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// TestSecretsInBasic checks that a secret in Basic is accepted both encoded (RFC 6749 §2.3.1) and
// raw (RU-14, AS-89).
func TestSecretsInBasic(t *testing.T) {
	for _, secret := range []string{
		"kJ7+q2/NfZ0aB9x+Vw3Tt5Rr8Uu1Yy4Oo6Pp2Ss=", "100%25sure", "100%sure", "a%", "a:b:c", "a b", "ä+%C3%A4", "plain",
	} {
		hash := storage.Hash(secrets.Hash(secret))
		c := storage.Client{ID: "app", SecretHash: &hash}
		for sent, want := range map[string]bool{
			secret: true, url.QueryEscape(secret): true,
			url.QueryEscape(secret) + "x": false, secret + "%20": false, "+": false, "": false,
		} {
			req := &http.Request{Header: http.Header{"Authorization": {basic("app", sent)}}}
			cred := Credentials{Header: Authorization{Count: 1}}
			cred.Header.ID, cred.Header.Secret, cred.Header.Basic = req.BasicAuth()
			who, err := cred.claim()
			if err != nil || who.id != "app" || who.knowsSecret(c) != want {
				t.Errorf("RU-14 secret %q sent as %q: got %+v, %v, want %t", secret, sent, who, err, want)
			}
		}
		if (claim{id: "app"}).knowsSecret(c) || (claim{id: "app", secret: secret}).knowsSecret(storage.Client{}) {
			t.Errorf("RU-14 no secret matches %q, or it matches a client without one", secret)
		}
	}
}

func FuzzBasic(f *testing.F) {
	for _, s := range []string{
		"", "Basic ", "Basic YTpi", "basic YTpi", "Basic YTpiOmM=", "Basic %%%", "Bearer x", basic("a%3Ab", "c+d"),
		basic("", ""), basic("\xff", "\x00"), basic("a", "%zz"),
	} {
		f.Add(s, "a", "b")
	}
	f.Fuzz(func(t *testing.T, header, id, secret string) {
		req := &http.Request{Header: http.Header{"Authorization": {header}}}
		cred := Credentials{ClientID: id, Secret: secret, Header: Authorization{Count: 1}}
		cred.Header.ID, cred.Header.Secret, cred.Header.Basic = req.BasicAuth()
		c, err := cred.claim()
		if err != nil {
			return
		}
		if c.id == "" && id != "" {
			t.Errorf("%q and client_id %q name no client", header, id)
		}
		if id != "" && c.id != id {
			t.Errorf("%q and client_id %q name %q", header, id, c.id)
		}
		if secret != "" && c.secret != secret {
			t.Errorf("%q and a secret in the body present another", header)
		}
	})
}
