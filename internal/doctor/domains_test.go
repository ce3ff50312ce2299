package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestDoctorOnDomains checks that doctor finds where a name resolves to, and gives advice (DL-01).
func TestDoctorOnDomains(t *testing.T) {
	const name = "auth.example.com"
	body := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(body))
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	issuer := "https://" + name + ":" + port
	for _, c := range []struct {
		name    string
		found   []string
		err     error
		own     string
		running bool
		body    string
		want    string
		advice  string
	}{
		{"DL-01: no address", nil, errors.New("no such host"), "192.0.2.1/24", true, "",
			"fail name auth.example.com has no address", "make an A or AAAA record"},
		{"DL-01: an address of this machine", []string{"192.0.2.1"}, nil, "192.0.2.1/24", true, "",
			"ok name auth.example.com leads to this machine", ""},
		{"DL-01: the same, in the other form", []string{"::ffff:192.0.2.1"}, nil, "192.0.2.1/24", false, "",
			"ok name auth.example.com leads to this machine", ""},
		{"DL-01: another machine, and the server does not run", []string{"192.0.2.7"}, nil, "192.0.2.1/24", false, "",
			"warning name auth.example.com leads to 192.0.2.7, which is no address of this machine",
			"change the A or AAAA record"},
		{"DL-01: another server", []string{"127.0.0.1"}, nil, "192.0.2.1/24", true, "{}",
			"fail name auth.example.com leads to 127.0.0.1, where another server answers", "change the A or AAAA record"},
		{"DL-01: a router before this server", []string{"127.0.0.1"}, nil, "192.0.2.1/24", true,
			`{"issuer":"` + issuer + `"}`, "ok name auth.example.com leads to 127.0.0.1, where this server answers", ""},
		{"DL-01: nobody", []string{"127.0.0.2"}, nil, "192.0.2.1/24", true, "",
			"warning name auth.example.com leads to 127.0.0.2, which is no address of this machine, and this server cannot",
			"some routers do not let a machine reach itself"},
		{"DL-01: one of two", []string{"192.0.2.1", "127.0.0.1"}, nil, "192.0.2.1/24", true, "not JSON",
			"fail name auth.example.com leads to 127.0.0.1, where another server answers", "remove old ones"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body = c.body
			d := testDoctor(t, "issuer: "+issuer+"\ntls: {acme: {domains: [\"*.example.com\", "+name+"]}}\n")
			d.running = c.running
			d.lookup = func(_ context.Context, network, host string) (out []netip.Addr, _ error) {
				if network != "ip" || host != name {
					t.Errorf("asked for %s %s", network, host)
				}
				for _, a := range c.found {
					out = append(out, netip.MustParseAddr(a))
				}
				return out, c.err
			}
			d.own = func() ([]net.Addr, error) {
				ip, network, err := net.ParseCIDR(c.own)
				return []net.Addr{&net.IPNet{IP: ip, Mask: network.Mask}}, err
			}
			d.domains(t.Context())
			if got := d.last(); len(d.findings) != 1 || !strings.HasPrefix(got, c.want) {
				t.Fatalf("got %d, %q, want %q", len(d.findings), got, c.want)
			}
			if got := d.findings[0].Advice; !strings.Contains(got, c.advice) || (got == "") != (c.advice == "") {
				t.Errorf("advice: got %q, want %q", got, c.advice)
			}
		})
	}
}
