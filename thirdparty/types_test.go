package thirdparty

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
)

func TestTypes(t *testing.T) {
	_, key := appleKey(t)
	full := map[string]func(*Connector){
		"client_id":     func(c *Connector) { c.ClientID = "c" },
		"client_secret": func(c *Connector) { c.ClientSecret = "s" },
		"issuer":        func(c *Connector) { c.Issuer = "https://idp.example.com" },
		"tenant":        func(c *Connector) { c.Tenant = "common" },
		"team_id":       func(c *Connector) { c.TeamID = "T" }, "key_id": func(c *Connector) { c.KeyID = "K" },
		"key":               func(c *Connector) { c.Key = key },
		"authorization_url": func(c *Connector) { c.AuthorizationURL = "https://idp.example.com/a" },
		"token_url":         func(c *Connector) { c.TokenURL = "https://idp.example.com/t" },
		"user_info_url":     func(c *Connector) { c.UserInfoURL = "https://idp.example.com/u" },
	}
	want := []string{
		"oidc", "oauth2", "google", "github", "gitlab", "entra", "okta", "auth0", "keycloak", "slack", "discord",
		"apple",
	}
	var got []string
	for _, typ := range Types() {
		got = append(got, typ.ID)
		c := Connector{ID: "up", Type: typ.ID}
		for _, need := range typ.Needs {
			full[need](&c)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s with all that it needs: %v", typ.ID, err)
		}
		for _, need := range typ.Needs { // one required setting is missing
			c := Connector{ID: "up", Type: typ.ID}
			for _, other := range typ.Needs {
				if other != need {
					full[other](&c)
				}
			}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), need+":") {
				t.Errorf("%s without %s: got %v", typ.ID, need, err)
			}
		}
		if typ.Name == "" || typ.Guide == "" || typ.Refresh == "" || typ.Checks == "" || typ.FreshLogin == "" ||
			typ.Protocol == "" {
			t.Errorf("%s is not fully described", typ.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	Types()[0].Scopes[0] = "changed"
	if Types()[0].Scopes[0] != "openid" {
		t.Error("the list of scopes is shared")
	}
}

func appleKey(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
