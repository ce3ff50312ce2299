package grant

import (
	"encoding/base64"
	"net/http"
	"testing"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
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
