package chart

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// rendered returns the objects of a golden file. The release tests compare golden files with helm's
// output.
func rendered(t *testing.T, name string) []object {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return objects(t, f)
}

func objects(t *testing.T, from io.Reader) (all []object) {
	t.Helper()
	for d := yaml.NewDecoder(from); ; {
		var one object
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if one != nil {
			all = append(all, one)
		}
	}
}

// at follows keys and indexes into an object.
func at(of any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := of.(object)
			of = m[s]
		case int:
			l, _ := of.([]any)
			if s >= len(l) {
				return nil
			}
			of = l[s]
		}
	}
	return of
}

func list(of any, path ...any) []any {
	l, _ := at(of, path...).([]any)
	return l
}

// routesOf returns the hosts and prefixes that objects of a kind route to the server.
func routesOf(all []object, kind string) map[string][]string {
	out := map[string][]string{}
	for _, o := range all {
		switch {
		case o["kind"] != kind:
		case kind == "Ingress":
			for _, rule := range list(o, "spec", "rules") {
				for _, p := range list(rule, "http", "paths") {
					host := fmt.Sprint(at(rule, "host"))
					out[host] = append(out[host], fmt.Sprint(at(p, "path")))
				}
			}
		default:
			host := fmt.Sprint(at(o, "spec", "hostnames", 0))
			for _, rule := range list(o, "spec", "rules") {
				for _, m := range list(rule, "matches") {
					out[host] = append(out[host], fmt.Sprint(at(m, "path", "value")))
				}
			}
		}
	}
	return out
}

// TestRoutes checks that each path that clients use, and each MCP server behind the gateway, is
// routed. If the host is shared, nothing else may be routed (AS-14, RS-06, DL-04).
func TestRoutes(t *testing.T) {
	for _, c := range []struct{ name, kind string }{
		{"sqlite", "Ingress"}, {"postgres", "HTTPRoute"}, {"shared-host", "Ingress"}, {"shared-host", "HTTPRoute"},
	} {
		routes := routesOf(rendered(t, c.name), c.kind)
		var values struct{ Config config.Config }
		b, err := os.ReadFile(chartDir + "/ci/" + c.name + "-values.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, &values); err != nil {
			t.Fatal(err)
		}
		origin := strings.Join(strings.SplitAfterN(values.Config.Issuer, "/", 4)[:3], "")
		origin = strings.TrimSuffix(origin, "/")
		urls := []string{values.Config.Issuer + "/authorize", values.Config.Issuer + "/account"}
		for _, p := range metadata.AuthorizationServerPaths(values.Config.Issuer) {
			urls = append(urls, origin+p)
		}
		// The server itself provides the API and the assistant's MCP server.
		for _, own := range []string{"/api/v1", "/mcp/admin"} {
			urls = append(urls, values.Config.Issuer+own, metadata.ProtectedResourceURL(values.Config.Issuer+own))
		}
		for _, r := range values.Config.Resources {
			for _, uri := range append([]string{r.URI}, r.Aliases...) {
				if !r.Upstream.Set() {
					if leads(routes, uri) {
						t.Errorf("DL-04: %s: %s is not behind the gateway, and is routed", c.name, uri)
					}
					continue
				}
				urls = append(urls, uri, metadata.ProtectedResourceURL(uri))
			}
		}
		for _, u := range urls {
			if !leads(routes, u) {
				t.Errorf("DL-04: %s, %s: nothing leads %s to the server: %v", c.name, c.kind, u, routes)
			}
		}
	}
	routes := routesOf(rendered(t, "shared-host"), "Ingress")
	for _, u := range []string{
		"https://example.com/", "https://example.com/authors", "https://example.com/tools",
		"https://example.com/.well-known/acme-challenge/a", "https://old.example.com/",
	} {
		if leads(routes, u) {
			t.Errorf("DL-04: %s is led to the server, and is not its: %v", u, routes)
		}
	}
	if !leads(routes, "https://old.example.com/.well-known/webauthn") {
		t.Errorf("DL-04: routes.extra is missing: %v", routes)
	}
}

// TestRestricted checks that each of our pods complies with the restricted pod security standard.
// It must get no service account token and no variables of Services (DL-04).
func TestRestricted(t *testing.T) {
	found := 0
	for _, name := range []string{"sqlite", "postgres", "shared-host", "everything", "volume", "notes"} {
		for _, o := range rendered(t, name) {
			pod, ok := at(o, "spec", "template", "spec").(object)
			if !ok {
				continue
			}
			if pod["automountServiceAccountToken"] != false || pod["enableServiceLinks"] != false {
				t.Errorf("DL-04: %s: the pod of %s gets a token or variables", name, o["kind"])
			}
			for _, c := range list(pod, "containers") {
				image := fmt.Sprint(at(c, "image"))
				if !strings.Contains(image, "mcp-authd") {
					continue // the operator's own container
				}
				found++
				for _, want := range []struct {
					value any
					path  []any
				}{
					{true, []any{"runAsNonRoot"}}, {65532, []any{"runAsUser"}},
					{"RuntimeDefault", []any{"seccompProfile", "type"}}, {true, []any{"readOnlyRootFilesystem"}},
					{false, []any{"allowPrivilegeEscalation"}}, {"ALL", []any{"capabilities", "drop", 0}},
				} {
					path := append([]any{"securityContext"}, want.path...)
					if at(c, path...) != want.value && at(pod, path...) != want.value {
						t.Errorf("DL-04: %s: %v of %s is %v, want %v", name, path, image, at(c, path...), want.value)
					}
				}
			}
			limited := func(c any) bool { return at(c, "resources", "limits") != nil }
			if !slices.ContainsFunc(list(pod, "containers"), limited) {
				t.Errorf("DL-04: %s: no container has a limit", name)
			}
		}
	}
	if found < 8 {
		t.Errorf("%d containers", found)
	}
}

// TestNoSecrets checks that rendered objects reference secrets but contain none (DL-04).
func TestNoSecrets(t *testing.T) {
	for _, name := range []string{"postgres", "everything", "volume"} {
		for _, o := range rendered(t, name) {
			if o["kind"] == "Secret" {
				t.Errorf("DL-04: %s has a Secret", name)
			}
			for _, c := range list(o, "spec", "template", "spec", "containers") {
				for _, e := range list(c, "env") {
					key := fmt.Sprint(at(e, "name"))
					if strings.Contains(key, "SECRET") || strings.Contains(key, "DATABASE_URL") {
						if value := fmt.Sprint(at(e, "value")); !strings.HasSuffix(key, "_FILE") ||
							!strings.HasPrefix(value, "/run/secrets/") {
							t.Errorf("DL-04: %s: %s is %s", name, key, value)
						}
					}
				}
			}
		}
	}
}
