package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var notes = storage.Resource{
	URI: "https://mcp.example.com/mcp", Name: "Notes",
	Scopes: []storage.ScopeText{
		{Name: "mcp", Description: "use the server", Default: true},
		{Name: "notes:read", Description: "read notes"},
		{Name: "notes:write", Description: "write notes", Implies: []string{"notes:read"}},
		{Name: "admin", Description: "everything", Implies: []string{"notes:write"}},
	},
}

func catalogueOf(t *testing.T, resources ...storage.Resource) *Catalogue {
	t.Helper()
	c, err := NewCatalogue(resources)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestResolve(t *testing.T) {
	other := storage.Resource{URI: "https://other.example.com/a"}
	twin := storage.Resource{URI: "https://other.example.com/b"}
	c := catalogueOf(t, notes, other, twin)
	for _, tt := range []struct {
		name  string
		in    []string
		want  string // "" for invalid_target
		match string
	}{
		{"AS-109 no resource means the default", nil, notes.URI, "absent: the default"},
		{"CL-48 all at once", []string{"HTTPS://MCP.Example.com:443/mcp/"}, notes.URI,
			"default port, trailing slash, upper case"},
		{"AS-107 exact", []string{notes.URI}, notes.URI, "exact"},
		{"AS-106 upper-case scheme and host", []string{"HTTPS://MCP.Example.com/mcp"}, notes.URI, "upper case"},
		{"CL-48 trailing slash", []string{notes.URI + "/"}, notes.URI, "trailing slash"},
		{"CL-48 default port", []string{"https://mcp.example.com:443/mcp"}, notes.URI, "default port"},
		{"AS-110 origin of the only resource on it", []string{"https://mcp.example.com/"}, notes.URI,
			"origin of the resource, trailing slash"},
		{"AS-110 origin shared by two is ambiguous", []string{"https://other.example.com"}, "", ""},
		{"AS-09 the same twice is tolerated", []string{notes.URI, notes.URI + "/"}, notes.URI,
			"named twice, trailing slash"},
		{"AS-09 two different are refused", []string{notes.URI, other.URI}, "", ""},
		{"AS-105 unknown", []string{"https://evil.example.com/mcp"}, "", ""},
		{"AS-105 another path on the host", []string{"https://other.example.com/c"}, "", ""},
		{"AS-104 not absolute", []string{"mcp.example.com"}, "", ""},
		{"AS-104 fragment", []string{notes.URI + "#x"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Resolve(tt.in)
			if tt.want == "" {
				if !errors.Is(err, oauth.NewError(oauth.InvalidTarget, "")) {
					t.Fatalf("got %q, %v, want invalid_target", got.URI, err)
				}
				return
			}
			if err != nil || got.URI != tt.want || got.Match != tt.match {
				t.Fatalf("got %q, %q, %v, want %q, %q", got.URI, got.Match, err, tt.want, tt.match)
			}
		})
	}
	t.Run("AS-105 an empty catalogue has no default", func(t *testing.T) {
		if _, err := catalogueOf(t).Resolve(nil); err == nil {
			t.Fatal("got nil, want invalid_target")
		}
	})
	t.Run("AS-107 a resource is known by its canonical URI, and no other is", func(t *testing.T) {
		c := catalogueOf(t, notes, storage.Resource{URI: "HTTPS://Other.example.com:443/a/", Name: "Other"})
		if r, ok := c.Lookup("https://other.example.com/a"); !ok || r.Name != "Other" {
			t.Errorf("got %+v, %v, want the resource Other", r, ok)
		}
		for _, uri := range []string{"https://other.example.com/b", "https://other.example.com", ""} {
			if r, ok := c.Lookup(uri); ok || r.Name != "" {
				t.Errorf("%q: got %+v, %v, want none", uri, r, ok)
			}
		}
	})
	t.Run("the configuration goes before the store", func(t *testing.T) {
		c := catalogueOf(t, notes, storage.Resource{URI: notes.URI + "/", Name: "Impostor"})
		if r, _ := c.Lookup(notes.URI); r.Name != "Notes" || len(c.Resources()) != 1 {
			t.Fatalf("got %+v", c.Resources())
		}
	})
}

// The authors of clients need the reason for a refused resource, because RFC 8707 has only one
// error code.
func TestResolveReasons(t *testing.T) {
	other := storage.Resource{URI: "https://other.example.com/a"}
	twin := storage.Resource{URI: "https://other.example.com/b"}
	c := catalogueOf(t, notes, other, twin)
	long := "https://mcp.example.com/" + strings.Repeat("a", 1000)
	for _, tt := range []struct {
		name, want string
		c          *Catalogue
		in         []string
	}{
		{"AS-105 an empty catalogue", "No protected resource is known", catalogueOf(t), []string{notes.URI}},
		{"AS-09 two different ones", "one resource at a time", c, []string{notes.URI, other.URI}},
		{"AS-09 the other way round", "one resource at a time", c, []string{other.URI, notes.URI}},
		{"AS-104 not absolute", "not an absolute URI", c, []string{"mcp.example.com"}},
		{"AS-104 empty", "not an absolute URI", c, []string{""}},
		{"AS-104 a good one before a bad one", "not an absolute URI", c, []string{notes.URI, "mcp.example.com"}},
		{"AS-105 unknown", "https://evil.example.com/mcp", c, []string{"https://evil.example.com/mcp"}},
		{"AS-110 an origin that two share", "https://other.example.com/", c, []string{"https://other.example.com/"}},
		{"AS-105 a long one is cut", strings.Repeat("a", 100), c, []string{long}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.c.Resolve(tt.in)
			e := oauth.AsError(err)
			if e.Code != oauth.InvalidTarget || !strings.Contains(e.Description, tt.want) || got.URI != "" {
				t.Errorf("got %q, %v, want invalid_target with %q", got.URI, err, tt.want)
			}
			if len(e.Description) > 400 {
				t.Errorf("the description has %d bytes", len(e.Description))
			}
		})
	}
	if _, err := NewCatalogue([]storage.Resource{notes, {URI: "mcp.example.com"}}); err == nil ||
		!strings.Contains(err.Error(), `"mcp.example.com"`) {
		t.Errorf("a resource that is no URI: got %v, want its name", err)
	}
}

func TestCatalogue(t *testing.T) {
	third := storage.Resource{URI: "https://other.example.com/c"}
	c := catalogueOf(t, notes, storage.Resource{URI: "https://other.example.com/a"},
		storage.Resource{URI: "https://other.example.com/b"}, third)
	t.Run("AS-110 an origin that three share is ambiguous", func(t *testing.T) {
		if got, err := c.Resolve([]string{"https://other.example.com"}); !errors.Is(err,
			oauth.NewError(oauth.InvalidTarget, "")) {
			t.Errorf("got %q, %v, want invalid_target", got.URI, err)
		}
	})
	t.Run("OB-10 the server's own resource has to be named, and is in no list", func(t *testing.T) {
		own := storage.Resource{
			URI: "https://auth.example.com/api/v1", Own: true,
			Scopes: []storage.ScopeText{{Name: "admin:read", Default: true}},
		}
		stolen := storage.Resource{URI: own.URI, Scopes: []storage.ScopeText{{Name: "mcp"}}}
		c := catalogueOf(t, own, stolen)
		if got, err := c.Resolve([]string{own.URI}); err != nil || !got.Own {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, requested := range [][]string{nil, {"https://auth.example.com"}} {
			if got, err := c.Resolve(requested); !errors.Is(err, oauth.NewError(oauth.InvalidTarget, "")) {
				t.Errorf("%v: got %q, %v, want invalid_target", requested, got.URI, err)
			}
		}
		if len(c.Resources()) > 0 || len(c.DefaultScopes()) > 0 || len(c.Own()) != 1 {
			t.Errorf("got %v, %v, %v", c.Resources(), c.DefaultScopes(), c.Own())
		}
		if got, err := catalogueOf(t, own, notes).Resolve(nil); err != nil || got.URI != notes.URI {
			t.Errorf("the default: got %q, %v", got.URI, err)
		}
	})
	t.Run("a resource without a name has its address", func(t *testing.T) {
		if r, _ := c.Lookup(third.URI); r.Name != third.URI {
			t.Errorf("got %q, want %q", r.Name, third.URI)
		}
		if r, _ := c.Lookup(notes.URI); r.Name != "Notes" {
			t.Errorf("got %q, want Notes", r.Name)
		}
	})
	t.Run("AS-51 the scopes to ask for first are the defaults of all", func(t *testing.T) {
		c := catalogueOf(t, notes,
			storage.Resource{URI: "https://a.example", Scopes: []storage.ScopeText{{Name: "a"}, {Name: "b"}}},
			storage.Resource{
				URI:    "https://b.example",
				Scopes: []storage.ScopeText{{Name: "mcp", Default: true}, {Name: "c", Default: true}},
			})
		if got := c.DefaultScopes().String(); got != "mcp a c" {
			t.Errorf("got %q, want %q", got, "mcp a c")
		}
	})
	t.Run("AS-107 a query that ends with a slash is no difference", func(t *testing.T) {
		const uri = "https://mcp.example.com/mcp?folder=a/"
		if got, err := catalogueOf(t, storage.Resource{URI: uri}).Resolve([]string{uri}); err != nil ||
			got.Match != "exact" {
			t.Errorf("got %q, %v, want exact", got.Match, err)
		}
	})
	t.Run("what is handed out is a copy", func(t *testing.T) {
		c.Resources()[0].Name = "changed"
		if r, _ := c.Lookup(notes.URI); r.Name != "Notes" {
			t.Errorf("got %q", r.Name)
		}
	})
}

func TestScopesOfResources(t *testing.T) {
	one := storage.Resource{Scopes: []storage.ScopeText{{Name: "only"}}}
	for _, tt := range []struct {
		name     string
		r        storage.Resource
		all, def string
	}{
		{"AS-31 several", notes, "mcp notes:read notes:write admin", "mcp"},
		{"AS-31 one that is not marked", one, "only", "only"},
		{"AS-31 none", storage.Resource{}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, def := ResourceScopes(tt.r), DefaultScopes(tt.r)
			if all.String() != tt.all || len(all) != len(tt.r.Scopes) || def.String() != tt.def {
				t.Errorf("got %q and %q, want %q and %q", all, def, tt.all, tt.def)
			}
		})
	}
	t.Run("AS-112 those that a client adds of its own accord are not unknown", func(t *testing.T) {
		in := oauth.ParseScopes("mcp offline_access openid profile email address phone Mcp notes:delete")
		if got := Unknown(notes, in).String(); got != "Mcp notes:delete" {
			t.Errorf("got %q, want %q", got, "Mcp notes:delete")
		}
	})
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want string
	}{
		{"AS-51 none means the defaults", "", "mcp"},
		{"AS-112 unknown ones are dropped", "openid email mcp", "mcp"},
		{"AS-112 only unknown ones mean the defaults", "openid profile", "mcp"},
		{"AS-113 a union with implied scopes is kept", "admin notes:read", "admin notes:read"},
		{"AS-31 offline_access comes along", "notes:read offline_access", "notes:read offline_access"},
		{"AS-31 offline_access alone is not a resource scope", "offline_access", "mcp offline_access"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Requestable(notes, oauth.ParseScopes(tt.in)).String(); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("AS-31 without a marked default the first scope is it", func(t *testing.T) {
		r := storage.Resource{Scopes: []storage.ScopeText{{Name: "a"}, {Name: "b"}}}
		if got := DefaultScopes(r); !slices.Equal(got, oauth.Scopes{"a"}) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestNarrow(t *testing.T) {
	granted, known := oauth.Scopes{"mcp", "notes:read"}, ResourceScopes(notes)
	for _, tt := range []struct {
		name, in, want string // want "" for invalid_scope
	}{
		{"AS-98 none means all", "", "mcp notes:read"},
		{"AS-98 fewer", "mcp", "mcp"},
		{"AS-98 wider is refused", "mcp admin", ""},
		{"AS-98 an unknown one is dropped", "mcp offline_access openid", "mcp"},
		{"AS-98 only unknown ones mean all", "offline_access", "mcp notes:read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Narrow(granted, oauth.ParseScopes(tt.in), known)
			if err != nil && !strings.HasSuffix(err.Error(), "has not granted admin.") {
				t.Errorf("RU-12 the error does not name the scope: %v", err)
			}
			if (err != nil) != (tt.want == "") || got.String() != tt.want {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestMachine(t *testing.T) {
	for _, tt := range []struct {
		name, registered, requested, want string
	}{
		{"AS-176 registered scopes without a request", "mcp notes:read", "", "mcp notes:read"},
		{"AS-176 a subset", "mcp notes:read", "notes:read", "notes:read"},
		{"AS-176 the one registered scope, which is no default", "notes:read", "", "notes:read"},
		{"AS-176 unregistered clients get the defaults", "", "", "mcp"},
		{"AS-176 nothing of what is registered", "mcp", "admin", ""},
		{"AS-176 unregistered clients get the defaults only", "", "admin", ""},
		{"AS-177 offline_access is no scope of a machine", "mcp", "mcp offline_access", "mcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Machine(notes, oauth.ParseScopes(tt.registered), oauth.ParseScopes(tt.requested))
			if (err != nil) != (tt.want == "") || got.String() != tt.want {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNeedsConsentWithoutScopes(t *testing.T) {
	plain := storage.Resource{URI: "https://plain.example"}
	if !NeedsConsent(plain, nil, nil) {
		t.Error("AS-70 a resource without scopes, never consented to: the person is not asked")
	}
	if NeedsConsent(plain, oauth.Scopes{}, nil) {
		t.Error("AS-74 a resource without scopes, consented to: the person is asked again")
	}
}

func TestNeedsConsent(t *testing.T) {
	for _, tt := range []struct {
		name, consented, requested string
		none, want                 bool
	}{
		{"AS-74 nothing consented asks", "", "mcp", true, true},
		{"AS-74 the same does not ask again", "mcp", "mcp", false, false},
		{"AS-114 more asks again", "mcp", "mcp notes:write", false, true},
		{"AS-113 an implied scope does not", "admin", "notes:read", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			consented := oauth.ParseScopes(tt.consented)
			if tt.none {
				consented = nil
			}
			if got := NeedsConsent(notes, consented, oauth.ParseScopes(tt.requested)); got != tt.want {
				t.Fatalf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Security PM4: a scope counts with everything that it includes.
func TestWithin(t *testing.T) {
	circular := storage.Resource{
		Scopes: []storage.ScopeText{
			{Name: "a", Implies: []string{"b"}}, {Name: "b", Implies: []string{"a"}}, {Name: "c"},
		},
	}
	for _, tt := range []struct {
		name             string
		r                storage.Resource
		in, allowed, out oauth.Scopes
	}{
		{"nothing included", notes, oauth.Scopes{"mcp", "notes:read"}, oauth.Scopes{"mcp"}, oauth.Scopes{"mcp"}},
		{"one step", notes, oauth.Scopes{"notes:write"}, oauth.Scopes{"notes:write"}, oauth.Scopes{}},
		{"two steps", notes, oauth.Scopes{"admin", "mcp"}, oauth.Scopes{"admin", "notes:write", "mcp"},
			oauth.Scopes{"mcp"}},
		{"all of it", notes, oauth.Scopes{"admin"}, oauth.Scopes{"admin", "notes:write", "notes:read"},
			oauth.Scopes{"admin"}},
		{"in a circle", circular, oauth.Scopes{"a", "b", "c"}, oauth.Scopes{"a", "c"}, oauth.Scopes{"c"}},
	} {
		t.Run("SP-06 "+tt.name, func(t *testing.T) {
			if got := Within(tt.r, tt.in, tt.allowed); !slices.Equal(got, tt.out) {
				t.Errorf("got %q, want %q", got, tt.out)
			}
		})
	}
}

// FuzzWithin: for any hierarchy, a remaining scope never implies a forbidden one, and no other
// scope is removed.
func FuzzWithin(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, byte(0b1011))
	f.Add([]byte{0xff, 0, 0xff, 1}, byte(0b0111))
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	members := func(bits byte) (out oauth.Scopes) {
		for i, n := range names {
			if bits>>i&1 == 1 {
				out = append(out, n)
			}
		}
		return out
	}
	f.Fuzz(func(t *testing.T, edges []byte, bits byte) {
		var r storage.Resource
		reach := [8]byte{}
		for i, n := range names {
			reach[i] = 1 << i
			if i < len(edges) {
				reach[i] |= edges[i]
				r.Scopes = append(r.Scopes, storage.ScopeText{Name: n, Implies: members(edges[i])})
			}
		}
		for range names { // the scopes that are implied in up to eight steps
			for i := range reach {
				for j := range reach {
					if reach[i]>>j&1 == 1 {
						reach[i] |= reach[j]
					}
				}
			}
		}
		got := Within(r, oauth.Scopes(names), members(bits))
		for i, n := range names {
			if want := reach[i]&^bits == 0; got.Has(n) != want {
				t.Errorf("%s includes %q of %q: open %v", n, members(reach[i]), members(bits), got.Has(n))
			}
		}
	})
}

// AS-239: an alias is a separate resource with all properties of the main resource.
func TestAliases(t *testing.T) {
	const work, home = "https://mcp.example.com/mcp@work", "https://mcp.example.com/mcp@home"
	aliased := notes
	aliased.Aliases = []string{"https://MCP.example.com/mcp@work/", home}
	stored := storage.Resource{URI: home, Name: "Taken"}
	other := storage.Resource{URI: "https://other.example/mcp", Aliases: []string{"https://other.example/x"}}
	c := catalogueOf(t, aliased, stored, other)
	t.Run("it shares scopes, and is told apart by its name", func(t *testing.T) {
		got, ok := c.Lookup(work)
		if !ok || got.URI != work || got.Name != "Notes (work)" || got.AliasOf != notes.URI ||
			got.Server() != notes.URI || len(got.Scopes) != len(notes.Scopes) || got.Aliases != nil {
			t.Errorf("got %+v, %v", got, ok)
		}
		if got, _ := c.Lookup(notes.URI); got.Server() != notes.URI || got.AliasOf != "" {
			t.Errorf("the resource: got %+v", got)
		}
	})
	t.Run("each is named exactly", func(t *testing.T) {
		for in, want := range map[string]string{
			work: work, work + "/": work, notes.URI: notes.URI,
			"https://mcp.example.com": notes.URI, // AS-110: aliases do not make the origin ambiguous
		} {
			if got, err := c.Resolve([]string{in}); err != nil || got.URI != want {
				t.Errorf("%s: got %s, %v, want %s", in, got.URI, err, want)
			}
		}
		if got, err := c.Resolve([]string{work, notes.URI}); oauth.AsError(err).Code != oauth.InvalidTarget {
			t.Errorf("AS-09 both: got %s, %v", got.URI, err)
		}
	})
	t.Run("AS-109 no resource means the default, and no alias", func(t *testing.T) {
		if got, err := c.Resolve(nil); err != nil || got.URI != notes.URI {
			t.Errorf("got %s, %v", got.URI, err)
		}
	})
	t.Run("what is configured goes before what was added", func(t *testing.T) {
		if got, _ := c.Lookup(home); got.AliasOf != notes.URI {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("one without a name is called by its URL", func(t *testing.T) {
		if got, _ := c.Lookup("https://other.example/x"); got.Name != "https://other.example/x" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("one on another host is an error", func(t *testing.T) {
		bad := notes
		bad.Aliases = []string{"https://evil.example/mcp"}
		if _, err := NewCatalogue([]storage.Resource{bad}); err == nil ||
			!strings.Contains(err.Error(), "on the origin of its resource") {
			t.Errorf("got %v", err)
		}
	})
}
