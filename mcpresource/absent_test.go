package mcpresource

import (
	"testing"
)

// TestPersons checks that requests without a caller do not share limits and sessions with any user.
func TestPersons(t *testing.T) {
	var nobody *Principal
	ann := &Principal{Issuer: authServer, Subject: "ann", ClientID: "app"}
	app := &Principal{Issuer: authServer, ClientID: "ann"}
	if nobody.Person() != "" || ann.Person() == "" || app.Person() == "" || ann.Person() == app.Person() {
		t.Errorf("got %q, %q, %q", nobody.Person(), ann.Person(), app.Person())
	}
}
