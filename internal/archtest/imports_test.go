package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// mayImport is the import table: which of our packages each tree may import, besides itself. The
// longest matching tree applies. Data flows one way, from the HTTP edge to the protocol to the
// store, and imports go the same way.
var mayImport = map[string][]string{
	"oauth":                      {},
	"web":                        {},
	"internal/pages":             {"web", "internal/text", "internal/label", "internal/sentence"},
	"internal/sentence":          {"oauth"},
	"internal/text":              {"web"},
	"internal/storage/migration": {"migrations"},
	"migrations":                 {},
	"internal/storage":           {"oauth"},
	"metadata":                   {"oauth", "internal/cors"},
	"internal/audit":             {"internal/storage", "internal/secrets", "internal/request"},
	// verifies the audit log, and needs nothing from the server
	"audit/verify":                {},
	"internal/secevent":           {"internal/audit", "internal/bounded", "internal/strictjson"},
	"internal/policy":             {"oauth", "internal/storage", "internal/sentence"},
	"authserver/internal/session": {"oauth", "internal/storage", "internal"},
	"internal/delegation":         {"oauth", "internal/storage", "internal/sentence"},
	"internal/keys":               {"oauth", "internal/storage", "internal/audit", "internal"},

	"internal/storage/sqlite": {
		"oauth", "internal/storage", "internal/storage/internal/column", "internal/storage/internal/portable",
		"internal/storage/migration", "internal",
	},
	"internal/storage/postgres": {
		"oauth", "internal/storage", "internal/storage/internal/column", "internal/storage/internal/portable",
		"internal/storage/migration", "internal",
	},
	"internal/storage/storagetest":       {"oauth", "internal/storage", "internal"},
	"internal/storage/internal/column":   {"oauth", "internal/storage", "internal/identifier", "internal/strictjson"},
	"internal/storage/internal/portable": {"oauth", "internal/storage", "internal/storage/internal/column"},

	"internal/attempt": {
		"oauth", "internal/storage", "internal/text", "internal/bounded", "internal/label", "internal/network",
		"internal/reference", "internal/request",
	},

	"authserver": {
		"dcr", "internal/storage/sqlite", "internal/storage/postgres", "oauth", "internal/delegation",
		"internal/storage", "internal/policy", "internal/keys", "authserver/internal/session", "internal/audit",
		"internal/trust", "internal/pages", "internal/text", "metadata", "internal/secevent", "internal",
		"internal/attempt", "authserver/internal/account", "authserver/internal/binding",
		"authserver/internal/catalogue", "authserver/internal/clients", "authserver/internal/connect",
		"authserver/internal/decisions", "authserver/internal/clearance", "authserver/internal/device",
		"authserver/internal/entry", "authserver/internal/flow", "authserver/internal/form",
		"authserver/internal/grant", "authserver/internal/refusal", "authserver/internal/shell",
	},
	"authserver/internal/account": {
		"oauth", "internal/storage", "internal/policy", "internal/audit", "internal/label", "internal/notice",
		"internal/secrets", "authserver/internal/binding", "authserver/internal/catalogue",
		"authserver/internal/entry", "authserver/internal/refusal", "internal/request", "internal/sentence",
	},
	"authserver/internal/binding": {
		"oauth", "internal/storage", "internal/policy", "internal/audit", "authserver/internal/refusal",
		"internal/access", "internal/request", "internal/sentence",
	},
	"authserver/internal/catalogue": {
		"oauth", "internal/storage", "internal/policy", "internal/attempt", "internal/audit",
		"authserver/internal/refusal", "internal/recent", "internal/request",
	},
	"authserver/internal/clients": {
		"oauth", "internal/storage", "internal/attempt", "authserver/internal/refusal", "internal/sentence",
	},
	"authserver/internal/connect": {"oauth", "internal/delegation", "internal/secrets", "internal/sentence"},
	"authserver/internal/decisions": {
		"oauth", "internal/storage", "internal/attempt", "internal/audit", "internal/bounded", "internal/reference",
		"internal/secrets", "authserver/internal/grant", "authserver/internal/refusal", "internal/request",
	},
	"authserver/internal/clearance": {
		"oauth", "internal/storage", "internal/policy", "internal/audit", "internal/secrets", "internal/ways",
		"authserver/internal/entry", "authserver/internal/refusal", "internal/strictjson", "internal/sentence",
	},
	"authserver/internal/device": {
		"oauth", "internal/storage", "internal/policy", "internal/audit", "internal/allowance", "internal/bounded",
		"internal/network", "internal/secrets", "authserver/internal/catalogue", "authserver/internal/form",
		"authserver/internal/refusal", "internal/sentence",
	},
	"authserver/internal/entry": {
		"oauth", "internal/storage", "internal/delegation", "internal/audit", "internal/allowance",
		"internal/bounded", "internal/notice", "internal/secrets", "internal/users", "internal/ways",
		"authserver/internal/binding", "authserver/internal/clients", "authserver/internal/device",
		"authserver/internal/form", "authserver/internal/refusal", "internal/request", "internal/sentence",
	},
	"authserver/internal/flow": {
		"oauth", "internal/delegation", "internal/storage", "internal/policy", "internal/attempt", "internal/audit",
		"internal/allowance", "internal/bounded", "internal/dpop", "internal/network", "internal/notice",
		"internal/secrets", "internal/ways", "authserver/internal/binding", "authserver/internal/catalogue",
		"authserver/internal/clients", "authserver/internal/clearance", "authserver/internal/connect",
		"authserver/internal/device", "authserver/internal/entry", "authserver/internal/form",
		"authserver/internal/grant", "authserver/internal/refusal", "internal/request", "internal/sentence",
	},
	"authserver/internal/form": {"oauth", "internal/sentence"},
	"authserver/internal/grant": {
		"oauth", "internal/storage", "internal/delegation", "internal/policy", "internal/keys", "internal/audit",
		"internal/trust", "internal/allowance", "internal/bounded", "internal/dpop", "internal/identifier",
		"internal/secrets", "internal/ways", "authserver/internal/binding", "authserver/internal/catalogue",
		"authserver/internal/clients", "authserver/internal/clearance", "authserver/internal/connect",
		"authserver/internal/form", "authserver/internal/refusal", "internal/request", "internal/sentence",
	},
	"authserver/internal/shell":   {"oauth", "internal/storage", "authserver/internal/grant"},
	"authserver/internal/refusal": {"oauth", "internal/storage", "internal/attempt", "internal/sentence"},
	"dcr": {
		"oauth", "internal/storage", "internal/policy", "internal/attempt", "internal/audit", "internal",
	},
	"thirdparty": {
		"oauth", "internal/storage", "internal/delegation", "internal/attempt", "internal/audit",
		"internal/secevent", "internal", "thirdparty/internal/provider", "thirdparty/internal/rules",
	},
	"thirdparty/internal/provider": {
		"oauth", "internal/claim", "internal/jwks", "internal/span", "internal/strictjson",
	},
	"thirdparty/internal/rules": {"oauth", "internal/claim", "internal/condition", "internal/scoperule"},

	"internal/trust": {
		"oauth", "internal/storage", "internal/bounded", "internal/claim", "internal/condition", "internal/jwks",
		"internal/network", "internal/safehttp", "internal/secrets", "internal/secevent", "internal/strictjson",
	},

	"mcpresource": {
		"oauth", "metadata", "internal/mcp", "internal/bounded", "internal/dpop", "internal/stopping",
		"mcpresource/internal/broker", "mcpresource/internal/clearance", "mcpresource/internal/issuer",
		"mcpresource/internal/limits", "mcpresource/internal/logged", "mcpresource/internal/message",
		"mcpresource/internal/report", "mcpresource/internal/rules", "mcpresource/internal/tasks",
		"mcpresource/internal/token",
	},
	"mcpclient":          {"oauth", "internal/discovery", "internal/dpop", "internal/signin"},
	"mcpclient/keychain": {"mcpclient"},
	// one call that assembles a server as cmd does: most of it comes from internal/assembly
	"mcpserver": {
		"oauth", "metadata", "internal/storage", "internal/storage/sqlite", "internal/storage/postgres",
		"internal/audit", "authserver", "thirdparty", "mcpresource", "mcpresource/gosdk", "internal/admin",
		"internal/assembly", "internal/config", "internal/metrics", "internal/secrets",
	},
	// for the tests of others
	"mcpserver/mcpservertest": {
		"authserver", "mcpresource/gosdk", "mcpserver", "internal/visit",
	},

	"mcpresource/internal/message": {"internal/strictjson"},
	"mcpresource/internal/logged":  {},
	"mcpresource/internal/broker": {
		"oauth", "internal/bounded", "mcpresource/internal/issuer", "mcpresource/internal/token",
	},
	"mcpresource/internal/clearance": {"oauth", "mcpresource/internal/issuer", "mcpresource/internal/token"},
	"mcpresource/internal/limits": {
		"internal/bounded", "mcpresource/internal/logged", "mcpresource/internal/rules",
		"mcpresource/internal/token",
	},
	"mcpresource/internal/report": {
		"oauth", "internal/reference", "mcpresource/internal/issuer", "mcpresource/internal/logged",
	},
	"mcpresource/internal/rules": {"oauth", "mcpresource/internal/logged", "mcpresource/internal/message"},
	"mcpresource/internal/tasks": {"mcpresource/internal/token"},
	"mcpresource/internal/token": {
		"oauth", "internal/bounded", "internal/jwks", "mcpresource/internal/issuer", "mcpresource/internal/logged",
		"mcpresource/internal/statuslist",
	},
	"mcpresource/internal/statuslist": {"oauth", "mcpresource/internal/issuer"},
	"mcpresource/internal/issuer":     {"oauth", "metadata", "internal/foreign", "internal/jwks"},
	"mcpresource/internal/tasktable":  {"mcpresource"},
	"mcpresource/postgres":            {"mcpresource", "mcpresource/internal/tasktable"},
	"mcpresource/sqlite":              {"mcpresource", "mcpresource/internal/tasktable"},
	"mcpresource/gosdk": {
		"oauth", "metadata", "mcpresource", "internal/mcp", "internal/stopping", "internal/strictjson",
	},
	// for the tests of others
	"mcpresource/mcptest":         {"oauth", "mcpresource"},
	"mcpresource/gosdk/gosdktest": {"mcpresource", "mcpresource/gosdk", "mcpresource/mcptest"},

	"internal": {
		"oauth", "internal/storage", "internal/audit", "internal/policy", "internal/keys",
		"authserver/internal/session", "metadata", "mcpresource", "internal",
	},
	"internal/assembly": {
		"internal/attempt", "oauth", "internal/storage", "internal/audit", "internal/policy", "internal/keys",
		"metadata", "internal/delegation", "authserver", "dcr", "thirdparty", "internal/secevent", "internal/trust",
		"mcpresource", "internal/text", "internal", "internal/admin/adminmcp",
		"internal/admin/console", "internal/storage/migration",
	},
	// the parts of the program that its commands share
	"internal/installation": {
		"internal/attempt", "oauth", "internal/storage", "internal/audit", "internal/policy", "internal/keys",
		"internal", "internal/storage/migration", "internal/storage/postgres", "internal/storage/sqlite",
	},
	"internal/doctor": {
		"internal/attempt", "oauth", "internal/storage", "metadata", "authserver", "thirdparty", "internal",
		"internal/storage/migration",
	},
	"internal/process":     {},
	"internal/auditformat": {"internal/audit", "audit/verify", "internal/label"},
	"internal/auditsink": {
		"internal/storage", "internal/audit", "internal/auditformat", "internal/label", "internal/safehttp",
		"internal/secrets",
	},
	"internal/auditlog": {
		"internal/storage", "internal/audit", "audit/verify", "internal/keys", "internal/label", "internal/network",
		"internal/secrets", "internal/request",
	},
	"internal/metrics":   {"oauth", "internal/storage", "internal/audit", "mcpresource"},
	"internal/discovery": {"oauth", "metadata", "internal/foreign", "internal/mcp"},
	"internal/config": {
		"internal/attempt", "oauth", "internal/storage", "internal/policy", "metadata", "authserver", "dcr",
		"thirdparty", "internal/trust", "internal/pages", "internal",
	},
	"internal/secrets": {},
	// administrative operations without a wire format; its front ends are sub-packages
	"internal/admin": {
		"internal/attempt", "internal/audit", "audit/verify", "dcr", "internal/keys", "metadata", "oauth",
		"internal/policy", "internal/storage", "thirdparty", "internal/trust", "internal",
	},
	"internal/cookie": {},
	"internal/span":   {},
	"internal/traces": {
		"internal/storage", "mcpresource", "mcpresource/otelmcp", "internal/bounded", "internal/cookie",
		"internal/span", "internal/wire",
	},
	"internal/admin/api": {
		"oauth", "internal/storage", "metadata", "mcpresource", "internal/admin", "internal/label",
		"internal/secrets", "internal/strictjson", "internal/fieldtext",
	},
	"internal/admin/adminmcp": {
		"internal/attempt", "oauth", "internal/storage", "mcpresource", "mcpresource/gosdk", "internal/admin",
		"internal/admin/api", "internal/label", "internal/strictjson",
	},
	"internal/admin/console": {
		"internal/attempt", "oauth", "internal/storage", "internal/admin", "internal/label", "internal/secrets",
		"internal/pages", "internal/fieldtext", "internal/sentence",
	},
	"internal/users": {
		"oauth", "internal/storage", "internal/audit", "internal/bounded", "internal/identifier", "internal/mail",
		"internal/network", "internal/notice", "internal/secrets", "internal/span", "internal/text", "internal/request",
	},
	"internal/mail":     {},
	"internal/transmit": {"internal/storage", "internal/audit", "internal/secevent", "internal/safehttp"},
	"internal/safehttp": {"internal/span"},
	"internal/notice": {
		"internal/storage", "internal/audit", "internal/text", "internal/label", "internal/mail",
		"internal/safehttp", "internal/secrets",
	},
	"internal/ways": {
		"oauth", "internal/storage", "internal/audit", "internal/label", "internal/users", "internal/secrets",
		"internal/request",
	},
	"internal/identifier": {},
	"internal/label":      {},
	"internal/growth":     {"internal/storage"},
	"internal/network":    {"oauth"},
	"internal/archtest":   {},
	"internal/mcp":        {},
	"internal/allowance":  {"internal/storage", "internal/bounded"},
	"internal/bounded":    {},
	"internal/claim":      {},
	"internal/condition":  {"internal/claim"},
	"internal/cors":       {},
	"internal/foreign":    {},
	"internal/jwks":       {},
	"internal/reference":  {},
	"internal/request":    {"oauth"},
	"internal/stopping":   {},
	"internal/dpop":       {"oauth", "internal/bounded"},
	"internal/wire":       {"oauth"},
	"internal/qr":         {},
	"internal/signin":     {"oauth", "metadata", "internal/discovery", "internal/dpop"},
	"internal/toolcall":   {"oauth", "internal/discovery", "internal/signin"},
	"internal/recent":     {"internal/storage"},
	"internal/scoperule":  {"oauth"},
	"internal/access":     {"oauth", "internal/storage", "internal/policy", "internal/recent", "internal/scoperule"},
	"internal/demoserver": {"oauth", "internal/storage", "mcpresource", "mcpresource/gosdk"},
	"internal/strictjson": {},
	"internal/fieldtext":  {},
	"internal/visit":      {},
}

// programs are run and not imported.
var programs = []string{"cmd", "test", "bench", "examples"}

// assembly assembles the parts, so it may import anything.
var assembly = append([]string{testkit}, programs...)

// testkit is imported only by tests.
const testkit = "internal/testkit"

func assembles(path string) bool { return anyWithin(path, assembly) }

func anyWithin(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return within(path, t) })
}

// rowOf returns the tree of the import table that contains a package.
func rowOf(path string) (tree string) {
	for t := range mayImport {
		if within(path, t) && len(t) > len(tree) {
			tree = t
		}
	}
	return tree
}

// importTable checks every import of our packages against the table.
func importTable(m module) (bad []string) {
	for _, p := range m.packages {
		if assembles(p.path) || p.path == "" {
			continue
		}
		row := rowOf(p.path)
		if row == "" {
			bad = append(bad, fmt.Sprintf("%s has no row in the import table", p.path))
			continue
		}
		for _, i := range p.ours {
			// A tree may import itself, but storage must not import its backends.
			if rowOf(i) != row && !slices.Contains(mayImport[row], rowOf(i)) && !anyInternal(row, i) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
			}
		}
	}
	return bad
}

// rooms are the parts of the server below internal/. A row names each that it imports, also if it
// may import all other packages of internal/.
var rooms = []string{
	"internal/attempt", "internal/audit", "internal/delegation", "internal/keys", "internal/policy",
	"internal/pages", "internal/secevent", "internal/storage", "internal/text", "internal/trust",
}

// anyInternal reports whether row may import all of internal but the rooms, and i is one of these.
func anyInternal(row, i string) bool {
	return within(i, "internal") && !anyWithin(i, rooms) && slices.Contains(mayImport[row], "internal")
}

// storageBackends checks that only the assembly chooses a database, and the packages that are an
// assembly in one call: mcpserver, and authserver with its New (embeddedAlone). An installation opens
// the database that its configuration names.
func storageBackends(m module) (bad []string) {
	for _, p := range m.packages {
		for _, i := range p.ours {
			backend := i == "internal/storage/sqlite" || i == "internal/storage/postgres"
			chooses := slices.Contains([]string{"authserver", "mcpserver", "internal/installation"}, p.path)
			if backend && !assembles(p.path) && !chooses {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
			}
		}
	}
	return bad
}

// forTests lists the public packages for the tests of others.
var forTests = []string{
	"mcpresource/gosdk/gosdktest", "mcpresource/mcptest",
	"mcpserver/mcpservertest",
}

// testkitInTests checks that no program contains test databases, simulated identity providers or
// invented callers.
func testkitInTests(m module) (bad []string) {
	for _, p := range m.packages {
		for _, i := range p.ours {
			known := within(i, testkit) && anyWithin(p.path, []string{testkit, "test", "bench"}) ||
				slices.Contains(forTests, i) && slices.Contains(forTests, p.path)
			if (within(i, testkit) || slices.Contains(forTests, i)) && !known {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
			}
		}
	}
	return bad
}

// public lists the packages that programs of others may import.
var public = []string{
	"audit/verify", "authserver", "dcr", "mcpclient", "mcpclient/keychain", "mcpresource", "mcpresource/gosdk",
	"mcpresource/gosdk/gosdktest", "mcpresource/mcptest", "mcpresource/otelmcp", "mcpresource/postgres",
	"mcpresource/sqlite", "mcpserver", "mcpserver/mcpservertest", "metadata", "migrations", "oauth",
	"thirdparty", "web",
}

// publicPackages checks that every other package is internal.
func publicPackages(m module) (bad []string) {
	for _, p := range m.packages {
		if p.path != "" && !isInternal(p.path) && !anyWithin(p.path, programs) && !slices.Contains(public, p.path) {
			bad = append(bad, p.path+" is public")
		}
	}
	return bad
}

// embeddedAlone checks that only New of authserver, which assembles a server for embedding programs,
// knows the databases and the registry. The rest of the package sees interfaces.
func embeddedAlone(m module) (bad []string) {
	made := []string{"dcr", "internal/storage/sqlite", "internal/storage/postgres"}
	for _, f := range m.files {
		if f.test() || f.dir() != "authserver" || f.path == "authserver/embed.go" {
			continue
		}
		for _, p := range ofModule(f.syntax) {
			if slices.Contains(made, p) {
				bad = append(bad, fmt.Sprintf("%s imports %s", f.path, p))
			}
		}
	}
	return bad
}

// threeServers checks that authserver, dcr and thirdparty depend on each other only through small
// interfaces declared by the consumer. None may reach another, not even through a third package,
// except that authserver may reach dcr (embeddedAlone).
func threeServers(m module) (bad []string) {
	three := []string{"authserver", "dcr", "thirdparty"}
	for _, p := range m.packages {
		if !slices.Contains(three, p.path) {
			continue
		}
		for _, dep := range p.reaches {
			if other := inside(dep); within(dep, modulePath) && other != p.path &&
				slices.Contains(three, other) && !(p.path == "authserver" && other == "dcr") {
				bad = append(bad, fmt.Sprintf("%s reaches %s", p.path, other))
			}
		}
	}
	return bad
}

// Packages that a tool author must never link, directly or indirectly.
var (
	heavy = []string{
		modulePath + "/authserver", modulePath + "/web",
		modulePath + "/internal", modulePath + "/migrations", "github.com/ory", "github.com/jackc", "modernc.org",
	}
	toolkits = []string{"github.com/modelcontextprotocol", "github.com/mark3labs"}
	// leaves lists the internal packages without heavy dependencies.
	leaves = []string{
		modulePath + "/internal/mcp", modulePath + "/internal/bounded", modulePath + "/internal/cors",
		modulePath + "/internal/reference", modulePath + "/internal/stopping",
		modulePath + "/internal/foreign", modulePath + "/internal/strictjson", proofs, keySetCache,
	}
	// proofs and keySetCache are the leaves that need go-jose, which mcpresource links anyway.
	proofs      = modulePath + "/internal/dpop"
	keySetCache = modulePath + "/internal/jwks"
	// light lists the modules that mcpresource may link, besides the standard library.
	light = []string{"github.com/go-jose/go-jose/v4", "golang.org/x/sync/singleflight"}
)

// lightResource checks that mcpresource needs only the standard library, go-jose, one small package
// of golang.org/x and our light packages. An adapter adds its SDK and nothing of the server.
func lightResource(m module) (bad []string) {
	for _, p := range m.packages {
		if !within(p.path, "mcpresource") {
			continue
		}
		refused := heavy
		if p.path == "mcpresource" || within(p.path, "mcpresource/internal") {
			refused = append(slices.Clone(heavy), toolkits...)
			for _, i := range p.foreign {
				if !anyWithin(i, light) {
					bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
				}
			}
		}
		for _, dep := range p.reaches {
			if anyWithin(dep, refused) && !slices.Contains(leaves, dep) {
				bad = append(bad, fmt.Sprintf("%s reaches %s", p.path, dep))
			}
		}
	}
	return bad
}

// keychains is the library that only mcpclient/keychain links.
const keychains = "github.com/zalando/go-keyring"

// lightClient checks that mcpclient needs only the standard library, go-jose, the types of
// golang.org/x/oauth2 and some of our packages.
func lightClient(m module) (bad []string) {
	mayReach := append(slices.Clone(leaves), modulePath+"/internal/discovery", modulePath+"/internal/signin")
	mayImport := append(slices.Clone(light), "golang.org/x/oauth2")
	for _, p := range m.packages {
		if !within(p.path, "mcpclient") {
			continue
		}
		for _, i := range p.foreign {
			if !anyWithin(i, mayImport) && !(p.path == "mcpclient/keychain" && within(i, keychains)) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
			}
		}
		for _, dep := range p.reaches {
			if anyWithin(dep, append(slices.Clone(heavy), toolkits...)) && !slices.Contains(mayReach, dep) {
				bad = append(bad, fmt.Sprintf("%s reaches %s", p.path, dep))
			}
		}
	}
	return bad
}

// apartFromSessions checks that the code that talks to providers, or decides by their responses,
// has no store. It could not know whose session is concerned.
func apartFromSessions(m module) (bad []string) {
	kept := []string{
		modulePath + "/internal/storage", modulePath + "/authserver/internal/session",
		modulePath + "/internal/delegation", modulePath + "/internal/audit", "database/sql",
	}
	for _, p := range m.packages {
		for _, dep := range p.reaches {
			if within(p.path, "thirdparty/internal") && anyWithin(dep, kept) {
				bad = append(bad, fmt.Sprintf("%s reaches %s", p.path, dep))
			}
		}
	}
	return bad
}

// weightlessLeaves checks that the internal packages that the light package may link reach only the
// standard library and each other. The packages that need go-jose may also reach the modules in light
// and the vocabulary. Indirect imports count.
func weightlessLeaves(m module) (bad []string) {
	for _, p := range m.packages {
		for _, dep := range p.reaches {
			known := slices.Contains(leaves, dep) ||
				slices.Contains([]string{proofs, keySetCache}, modulePath+"/"+p.path) &&
					(anyWithin(dep, light) || dep == modulePath+"/oauth")
			if slices.Contains(leaves, modulePath+"/"+p.path) && !standard(dep) && !known {
				bad = append(bad, fmt.Sprintf("%s reaches %s", p.path, dep))
			}
		}
	}
	return bad
}

// bytesAlone checks that the reader of a request body sees nothing else of the request.
func bytesAlone(m module) (bad []string) {
	for _, p := range m.packages {
		if p.path == "mcpresource/internal/message" && slices.Contains(p.reaches, "net/http") {
			bad = append(bad, p.path+" reaches net/http")
		}
	}
	return bad
}

// standardOnly checks that the vocabulary, the contracts and the pages need no library.
func standardOnly(m module) (bad []string) {
	plain := []string{
		"oauth", "metadata", "internal/storage", "internal/policy", "internal/audit", "internal/pages",
		"internal/storage/migration", "web", "migrations",
	}
	for _, p := range m.packages {
		if slices.Contains(plain, p.path) && len(p.foreign) > 0 {
			bad = append(bad, fmt.Sprintf("%s imports %s", p.path, strings.Join(p.foreign, ", ")))
		}
	}
	return bad
}

// verifierAlone checks that the audit log verifier needs only the hashes and signatures of x/mod.
func verifierAlone(m module) (bad []string) {
	for _, p := range m.packages {
		for _, i := range p.foreign {
			if p.path == "audit/verify" && !within(i, "golang.org/x/mod") {
				bad = append(bad, p.path+" imports "+i)
			}
		}
	}
	return bad
}

// owners says which trees may import a library. Every other import of it is refused.
var owners = map[string][]string{
	"github.com/ory/fosite":           {"authserver/internal/shell"},
	"github.com/landlock-lsm":         {"internal/sandbox"},
	"github.com/elastic":              {"internal/sandbox"},
	"modernc.org":                     {"internal/storage/sqlite"},
	"github.com/jackc":                {"internal/storage/postgres", "internal/testkit/pgtest"},
	"github.com/gorilla/securecookie": {"authserver/internal/session"},
	"github.com/spf13/cobra":          {"cmd"},
	"github.com/go-jose/go-jose/v3":   {}, // v4 does all our JOSE work; v3 belongs to fosite
	"github.com/modelcontextprotocol": {
		"mcpresource/gosdk", "internal/admin/adminmcp", "internal/demoserver", "internal/toolcall", "cmd", "test",
		"bench", "examples",
	},
	"github.com/mark3labs":      {"test", "bench", "examples"},
	"github.com/coreos/go-oidc": {"thirdparty/internal/provider"},
	"github.com/expr-lang/expr": {"internal/condition"},
	keychains:                   {"mcpclient/keychain"},
	"golang.org/x/oauth2": {
		"thirdparty/internal/provider", "mcpclient", "internal/admin/api",
		"mcpserver/mcpservertest",
	},
	"github.com/boombuler/barcode": {"internal/qr"},
	"github.com/go-webauthn":       {"internal/ways", "internal/testkit"},
	"github.com/pquerna/otp":       {"internal/ways", "test"},
	"github.com/redis":             {}, // replicas share state in PostgreSQL
	"github.com/dgrijalva/jwt-go":  {},
	"github.com/golang-jwt":        {},
	"github.com/mattn/go-sqlite3":  {}, // needs cgo
	"golang.org/x/text":            {"internal/text"},
	"golang.org/x/mod":             {"audit/verify", "internal/auditlog"},
	"github.com/prometheus":        {"internal/metrics"},
	// others start spans with internal/span
	"go.opentelemetry.io/otel": {"internal/span", "internal/traces", "mcpresource/otelmcp", "internal/testkit"},
}

// libraryOwners keeps each library behind the package that was built around it.
func libraryOwners(m module) (bad []string) {
	for _, p := range m.packages {
		for _, i := range p.foreign {
			for library, trees := range owners {
				if within(i, library) && !anyWithin(p.path, trees) {
					bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
				}
			}
		}
	}
	return bad
}

// openExamples checks that examples import only packages that every program can import.
func openExamples(m module) (bad []string) {
	for _, p := range m.packages {
		for _, i := range p.ours {
			if within(p.path, "examples") && (within(i, "internal") || strings.Contains(i, "/internal/")) {
				bad = append(bad, fmt.Sprintf("%s imports %s", p.path, i))
			}
		}
	}
	return bad
}

// noCgo checks for cgo, because the binary is static and cross-compiled.
func noCgo(m module) (bad []string) {
	for _, p := range m.packages {
		if p.cgo {
			bad = append(bad, p.path+" uses cgo")
		}
	}
	return bad
}
