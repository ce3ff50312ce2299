package config

import (
	"slices"
	"strings"
	"testing"
)

// TestPeers checks that the listener for other replicas is an address or one of the known words
// (RU-08).
func TestPeers(t *testing.T) {
	for _, c := range []struct{ listen, address, fault string }{
		{"auto", "", ""},
		{"off", "", ""},
		{":9415", "", ""},
		{":9415", "web-1.internal:9415", ""},
		{"10.0.0.5:0", "10.0.0.5:9415", ""},
		{"", "", "peers.listen"},
		{"9415", "", "peers.listen"},
		{"automatic", "", "peers.listen"},
		{":9415", "web-1", "peers.address"},
		{":9415", ":9415", "peers.address"},
		{":9415", "0.0.0.0:9415", "peers.address"},
		{":9415", "[::]:9415", "peers.address"},
		{":9415", "10.0.0.5:0", "peers.address"},
		{"auto", "10.0.0.5:9415", "peers.address: must be empty while peers.listen is auto"},
		{"off", "10.0.0.5:9415", "peers.address: must be empty while peers.listen is off"},
	} {
		l := Default(func(string) string { return "" })
		l.Peers = Peers{c.listen, c.address}
		err := l.Validate()
		if (c.fault == "") != (err == nil || !strings.Contains(err.Error(), "peers.")) ||
			c.fault != "" && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("RU-08: %q, %q: got %v, want %q", c.listen, c.address, err, c.fault)
		}
	}
}

// TestPassesSessions checks that replicas forward requests only if there are programs and
// PostgreSQL (RU-08).
func TestPassesSessions(t *testing.T) {
	program := []Resource{{Upstream: Upstream{URL: "http://127.0.0.1"}}, {Upstream: Upstream{Command: []string{"x"}}}}
	for _, c := range []struct {
		database, listen string
		resources        []Resource
		want             bool
	}{
		{"postgres://db/authd", "auto", program, true},
		{"postgres://db/authd", ":9415", program, true},
		{"postgres://db/authd", "off", program, false},
		{"postgres://db/authd", "auto", program[:1], false},
		{"", "auto", program, false},
	} {
		l := Config{Database: Database{URL: Secret(c.database)}, Resources: c.resources, Peers: Peers{Listen: c.listen}}
		if got := l.PassesSessions(); got != c.want {
			t.Errorf("RU-08: %+v: got %v", c, got)
		}
	}
}

// TestDatabaseHosts checks that the hosts match those of pgx (RU-08).
func TestDatabaseHosts(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                 nil,
		"postgres://db.example.com/authd":  {"db.example.com:5432"},
		"postgres://u:p%40s@10.0.0.1:6/db": {"10.0.0.1:6"},
		"postgresql://a:1,b:2,[::1]:3,[fd00::1]/db?sslmode=require": {"a:1", "b:2", "[::1]:3", "[fd00::1]:5432"},
		"postgres:///authd":                            {"localhost:5432"},
		"postgres:///authd?host=/run/postgresql":       {"localhost:5432"},
		"postgres://%2Frun%2Fpostgresql/authd":         {"localhost:5432"},
		"postgres://u@/authd?host=db-1,db-2&port=6432": {"db-1:6432", "db-2:6432"},
		"postgres://db?sslmode=require":                {"db:5432"},
	} {
		c := Config{Database: Database{URL: Secret(text)}}
		if got := c.DatabaseHosts(); !slices.Equal(got, want) {
			t.Errorf("RU-08: %q: got %q, want %q", text, got, want)
		}
	}
}
