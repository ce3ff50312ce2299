package trust

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

func FuzzAssertion(f *testing.F) {
	r := newRig(f)
	i := r.issuers(f, nil)
	good := r.company.sign(f, typeIDJAG, r.idJAG())
	f.Add(good)
	f.Add(r.platform.sign(f, "", r.build()))
	f.Add("e30.e30.")
	f.Add("..")
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := i.Verify(t.Context(), raw)
		if err == nil && a.Subject == "" {
			t.Errorf("accepted %q as %+v", raw, a)
		}
	})
}

// FuzzClaims: signed claims may still be malformed.
func FuzzClaims(f *testing.F) {
	r := newRig(f)
	i := r.issuers(f, nil)
	f.Add(typeIDJAG, `{"iss":"https://idp.example","aud":["https://auth.example"],"sub":"u"}`)
	f.Add("JWT", `{"iss":"https://tokens.example","aud":"https://auth.example","exp":1e400}`)
	f.Fuzz(func(t *testing.T, typ, payload string) {
		s := r.company
		if typ != typeIDJAG {
			s = r.platform
		}
		if a, err := i.Verify(t.Context(), s.signText(t, typ, payload)); err == nil && (a.Subject == "" || a.ID == "") {
			t.Errorf("accepted %q as %+v", payload, a)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("refs/heads/*", "refs/heads/main")
	f.Add("**?", "a")
	f.Fuzz(func(t *testing.T, glob, text string) {
		m, err := compileMatch(storage.TrustMatch{Claim: "c", Glob: glob})
		if err == nil && m.holds(map[string]any{"c": text}) && !m.holds(map[string]any{"c": []any{1, text}}) {
			t.Errorf("%q matches %q, and not in a list", glob, text)
		}
	})
}

func FuzzTemplate(f *testing.F) {
	f.Add("ci:{{.a.b}}", "x")
	f.Add("{{{{.a}}", "\x00")
	f.Fuzz(func(t *testing.T, source, value string) {
		tpl, err := compileTemplate(source)
		if err != nil {
			return
		}
		if name, err := tpl.name(map[string]any{"a": value}); err == nil && (name == "" || len(name) > maxName) {
			t.Errorf("%q makes %q", source, name)
		}
	})
}
