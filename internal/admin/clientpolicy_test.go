package admin_test

import (
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// TestClientPolicy checks that an administrator sees the rule that admits a client, and all rules
// in the order of evaluation (OB-11).
func TestClientPolicy(t *testing.T) {
	s := installed(t)
	in := admin.NewClient{ID: "robot", GrantTypes: []string{"client_credentials"}}
	if _, err := admin.ClientAdd.Do(t.Context(), s.Operator(), in); err != nil {
		t.Fatal(err)
	}
	d, err := admin.ClientShow.Do(t.Context(), s.Operator(), admin.ClientID{ID: "robot"})
	if err != nil || d.Policy.Trust != "allow" || !strings.Contains(d.Policy.Rule, "client add") ||
		!strings.Contains(d.Policy.Consent, "acts for itself") || d.LastRead.URL != "" {
		t.Errorf("OB-11: got %+v, %v", d, err)
	}
	s.Config.Registration.DocumentsDeny = []string{"bad.example"}
	s.Config.Registration.DocumentsAllow = []string{"good.example"}
	s.Config.Registration.DocumentsOthers = ""
	p, err := admin.ClientPolicyShow.Do(t.Context(), s.Operator(), admin.None{})
	want := []admin.HostRule{
		{Pattern: "bad.example", Trust: "deny", Key: "registration.documents_deny"},
		{Pattern: "good.example", Trust: "allow", Key: "registration.documents_allow"},
		{Pattern: "*", Trust: "ask", Key: "registration.documents_others"},
	}
	if err != nil || len(p.Hosts) != 3 || p.Hosts[0] != want[0] || p.Hosts[1] != want[1] || p.Hosts[2] != want[2] {
		t.Errorf("OB-11: got %+v, %v; want %v", p.Hosts, err, want)
	}
}
