package mcpserver_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpserver"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

var readNotes = gosdk.Scope{Name: "notes:read", Description: "read your notes"}

func notes(defaults ...gosdk.Scope) *gosdk.Tools {
	s := mcp.NewServer(&mcp.Implementation{Name: "my notes", Title: "Notes", Version: "1"}, nil)
	return gosdk.NewTools(s, defaults...)
}

// withWipe returns tools with a scope that contradicts itself.
func withWipe() *gosdk.Tools {
	tools := notes(readNotes)
	gosdk.AddTool(tools, &mcp.Tool{Name: "wipe"}, list,
		gosdk.Scope{Name: "wipe", Description: "delete all notes", Access: "read", Dangerous: true})
	return tools
}

// serve runs a server until it is ready, and then stops it.
func serve(t *testing.T, tools *gosdk.Tools, o mcpserver.Options) (at mcpserver.Ready, err error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	o.Logger = slog.New(slog.DiscardHandler)
	o.Ready = func(r mcpserver.Ready) { at = r; stop() }
	return at, mcpserver.Serve(ctx, tools, o)
}

// alone isolates a test from the environment and returns its home directory.
func alone(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for name, value := range map[string]string{
		"XDG_DATA_HOME": home, "STATE_DIRECTORY": "", "MCP_AUTHD_CONFIG": "", "MCP_AUTHD_DATA_DIR": "",
	} {
		t.Setenv(name, value)
		if value == "" {
			os.Unsetenv(name)
		}
	}
	return home
}

// AS-01: wrong options are reported at the start, each with the remedy, and the server does not
// start.
func TestWrongOptions(t *testing.T) {
	home := alone(t)
	for name, c := range map[string]struct {
		o     mcpserver.Options
		tools *gosdk.Tools
		want  string
	}{
		"plain http on another machine": {
			o:    mcpserver.Options{URL: "http://notes.example.com"},
			want: `URL: issuer "http://notes.example.com" must be https`,
		},
		"a path": {
			o: mcpserver.Options{URL: "https://notes.example.com/mcp"},
			want: `URL "https://notes.example.com/mcp" is not that of a host, such as https://notes.example.com; ` +
				`the MCP server is at /mcp there`,
		},
		"no URL at all": {o: mcpserver.Options{URL: "notes"}, want: `URL "notes" is not that of a host`},
		"every address, no URL": {
			o:    mcpserver.Options{Listen: "0.0.0.0:0"},
			want: "set URL to how clients reach it, such as https://notes.example.com",
		},
		"no address": {o: mcpserver.Options{Listen: "here"}, want: "choose another address"},
		"another database": {
			o:    mcpserver.Options{Database: "mysql://root:secret@db/notes"},
			want: "Database: must be a URL such as postgres://user@host/name or the path of a SQLite file",
		},
		"PostgreSQL without a key": {
			o:    mcpserver.Options{Database: "postgres://notes@db/notes"},
			want: "with PostgreSQL set SecretKeys or MCP_AUTHD_SECRET_KEY_FILE, to the same on every replica",
		},
		"a provider of no type": {
			o:    mcpserver.Options{Providers: []thirdparty.Connector{{ID: "x", Type: "nothing", ClientID: "y"}}},
			want: "Providers[0]: ",
		},
		"no such file": {
			o:    mcpserver.Options{Config: "nowhere.yaml"},
			want: "configuration file nowhere.yaml cannot be read",
		},
		"a short key": {
			o:    mcpserver.Options{SecretKeys: [][]byte{{1}}},
			want: "SecretKeys[0] has 1 bytes, and needs 32: make one with: openssl rand 32",
		},
		"no default scope": {
			tools: notes(),
			want:  `call gosdk.NewTools with one, such as gosdk.Scope{Name: "mcp", Description: "use this server"}`,
		},
		"a scope without words": {
			tools: notes(gosdk.Scope{Name: "mcp"}),
			want:  `the scope "mcp" has no Description, which the consent page shows`,
		},
		"reading that is dangerous": {
			tools: withWipe(),
			want:  `the scope "wipe": its access is read, but it is dangerous`,
		},
		"an unknown implied scope": {
			tools: notes(gosdk.Scope{Name: "mcp", Description: "use it", Implies: []string{"mpc"}}),
			want:  `the scope "mcp" implies "mpc", which is not declared: correct the name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.DataDir = filepath.Join(home, "data")
			if c.tools == nil {
				c.tools = notes(readNotes)
			}
			at, err := serve(t, c.tools, c.o)
			if err == nil || at.MCPURL != "" || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, %+v; want one line with %q", err, at, c.want)
			}
			if strings.Contains(err.Error(), "secret@") {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
	t.Run("a file with an upstream", func(t *testing.T) {
		file := filepath.Join(home, "c.yaml")
		text := "resources:\n  - {uri: http://127.0.0.1:1/x, upstream: {url: http://127.0.0.1:2}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := serve(t, notes(readNotes), mcpserver.Options{Config: file}); err == nil ||
			!strings.Contains(err.Error(), "has an upstream, which mcp-authd serve is for") {
			t.Errorf("got %v", err)
		}
	})
}

// The data directory is private, is named after the server, and is reused at the next start.
func TestFiles(t *testing.T) {
	home := alone(t)
	var link string
	for range 2 {
		at, err := serve(t, notes(readNotes), mcpserver.Options{})
		if err != nil || at.Name != "Notes" || at.DataDir != filepath.Join(home, "mcp-authd", "my-notes") {
			t.Fatalf("got %+v, %v", at, err)
		}
		if at.SetupLink == "" || at.SetupLink == link {
			t.Errorf("got the setup link %q; want a new one at each start, until there is an account", at.SetupLink)
		}
		link = at.SetupLink
		for name, want := range map[string]fs.FileMode{"": 0o700, "secret.key": 0o600, "mcp-authd.db": 0o600} {
			info, err := os.Stat(filepath.Join(at.DataDir, name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%q: got %v, %v, want %v", name, info, err, want)
			}
		}
	}
	data := filepath.Join(home, "mcp-authd", "my-notes")
	if err := os.Remove(filepath.Join(data, "secret.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := serve(t, notes(readNotes), mcpserver.Options{}); err == nil ||
		!strings.Contains(err.Error(), "the secret key is missing: put ") {
		t.Errorf("without its key, got %v", err)
	}
}

// The environment applies where no option is set.
func TestEnvironment(t *testing.T) {
	alone(t)
	data := filepath.Join(t.TempDir(), "d")
	t.Setenv("MCP_AUTHD_ISSUER", "https://notes.example.com")
	t.Setenv("MCP_AUTHD_DATA_DIR", data)
	at, err := serve(t, notes(readNotes), mcpserver.Options{})
	if err != nil || at.MCPURL != "https://notes.example.com/mcp" || at.DataDir != data ||
		!strings.HasPrefix(at.SetupLink, "https://notes.example.com/setup#") {
		t.Errorf("got %+v, %v", at, err)
	}
	at, err = serve(t, notes(readNotes), mcpserver.Options{URL: "https://other.example.com/"})
	if err != nil || at.MCPURL != "https://other.example.com/mcp" {
		t.Errorf("with an option, got %+v, %v", at, err)
	}
}

// Adjust receives the rules of the tools, and its mistakes are reported.
func TestAdjust(t *testing.T) {
	alone(t)
	_, err := serve(t, notes(readNotes), mcpserver.Options{Adjust: func(c *mcpresource.Config) {
		c.Policy.(*mcpresource.Rules).Prompts = map[string][]string{"*": {"notes:raed"}}
	}})
	if err == nil || !strings.Contains(err.Error(), `has no scope "notes:raed", which Rules.Prompts["*"] asks for`) {
		t.Errorf("got %v", err)
	}
}

// Replicas share a PostgreSQL database and a key. With another key they cannot read it.
func TestPostgres(t *testing.T) {
	alone(t)
	o := mcpserver.Options{
		DataDir:    filepath.Join(t.TempDir(), "d"),
		Database:   pgtest.Start(t).Database(t),
		SecretKeys: [][]byte{bytes.Repeat([]byte{7}, 32)},
	}
	for range 2 {
		if at, err := serve(t, notes(readNotes), o); err != nil || at.SetupLink == "" {
			t.Fatalf("got %+v, %v", at, err)
		}
	}
	for _, name := range []string{"secret.key", "mcp-authd.db"} {
		if _, err := os.Stat(filepath.Join(o.DataDir, name)); err == nil {
			t.Errorf("it made %s", name)
		}
	}
	o.SecretKeys[0] = bytes.Repeat([]byte{8}, 32)
	if _, err := serve(t, notes(readNotes), o); err == nil ||
		!strings.Contains(err.Error(), "the secret key is not the one this database was made with") {
		t.Errorf("with another key, got %v", err)
	}
}
