package pages

import (
	"net/http"
	"strings"
	"time"
)

// sampleKeys returns a user's keys for programs.
func sampleKeys(at time.Time) AccountKeys {
	return AccountKeys{
		AccountForm: AccountForm{"/account/connections", "sealed-step"},
		NextURL:     "/account?keys=grt_VP72f5mdC5", MakeURL: "/account/keys",
		Keys: []ProgramKey{{
			ID: "grt_VP72f5mdC7", Name: "Nightly report", ClientID: "key_VP72f5mdC6ab", Server: notes,
			Scopes: []Scope{{Name: "notes:read", Description: "Read your notes"}},
			Made:   Event{At: at, Agent: Given("Chrome on Windows"), From: "203.0.113.0/24"},
			Ends:   at.AddDate(0, 0, 30),
			Used:   Event{At: at.Add(time.Hour), From: "198.51.100.0/24"},
			// the longest possible name
			LastCall: Call{Tool: "notes_" + strings.Repeat("of_the_day", 5) + "_summary", At: at.Add(time.Hour)},
		}, {
			ID: "grt_VP72f5mdC5", Name: "Backup", ClientID: "key_VP72f5mdC4ab", Server: notes,
			Made: Event{At: at}, Ends: at.AddDate(0, 0, 1), Paused: true,
		}},
	}
}

func sampleMakeKey() MakeKey {
	return MakeKey{
		Action: "/account/keys", Step: "sealed-step", Server: notes, BackURL: "/account",
		Scopes: []Scope{
			{Name: "mcp", Description: "Use the tools of this server", Fixed: true},
			{Name: "notes:read", Description: "Read your notes"},
			{Name: "notes:delete", Description: "Delete your notes", Dangerous: true},
		},
		Days: []DayChoice{{Days: 1}, {Days: 30, Checked: true}, {Days: 90}},
	}
}

func keySamples() []sample {
	return []sample{
		{"makekey", func(p *Pages, w http.ResponseWriter) { p.MakeKey(w, http.StatusOK, sampleMakeKey()) }},
		{"makekey-problem", func(p *Pages, w http.ResponseWriter) {
			v := sampleMakeKey()
			v.Problem, v.Name, v.Scopes = Say("makekey.full"), "Nightly report", nil
			p.MakeKey(w, http.StatusConflict, v)
		}},
		{"makekey-which", func(p *Pages, w http.ResponseWriter) {
			p.MakeKey(w, http.StatusOK, MakeKey{BackURL: "/account", Servers: []ServerChoice{
				{notes, "/account/keys?resource=https%3A%2F%2Fnotes.example.com%2Fmcp"},
				{Party{URL: "https://wiki.example.com/mcp"}, "/account/keys?resource=https%3A%2F%2Fwiki.example.com"},
			}})
		}},
		{"makekey-none", func(p *Pages, w http.ResponseWriter) {
			p.MakeKey(w, http.StatusOK, MakeKey{BackURL: "/account"})
		}},
		{"keymade", func(p *Pages, w http.ResponseWriter) {
			p.KeyMade(w, KeyMade{
				Name: "Nightly report", Server: notes,
				Scopes:   []Scope{{Name: "notes:read", Description: "Read your notes"}},
				Ends:     time.Date(2026, 12, 21, 12, 0, 0, 0, time.UTC),
				ClientID: "key_VP72f5mdC6ab", Secret: "mcpks_Z2xhc3M0fGhvdXNl",
				TokenURL: "https://auth.example.com/token",
				Command: "curl -u 'key_VP72f5mdC6ab:mcpks_Z2xhc3M0fGhvdXNl' -d grant_type=client_credentials " +
					"'https://auth.example.com/token'",
				BackURL: "/account#keys",
			})
		}},
	}
}

// sampleHelpers returns a tree of sub-agents with every possible depth.
func sampleHelpers() Helpers {
	ends := time.Date(2026, 11, 20, 9, 56, 0, 0, time.UTC)
	read := []Scope{{Name: "notes:read", Description: "Read your notes"}}
	erase := Scope{Name: "notes:delete", Description: "Delete your notes", Dangerous: true}
	at := func(id, name string, scopes []Scope, below ...Helper) Helper {
		return Helper{ID: id, Name: name, Scopes: scopes, Ends: ends, Below: below}
	}
	return Helpers{
		AccountForm: AccountForm{"/account/connections", "sealed-step"}, GrantID: "grt_VP72f5mdC9",
		Client: claude, Server: notes, BackURL: "/account#apps",
		Helpers: []Helper{
			at("nod_1", "planner", append(read, erase),
				at("nod_2", "reader", read, at("nod_3", "index", read, at("nod_4", "page-1", nil))),
				at("nod_5", "reader-of-everything-that-was-said-in-the-last-quarter", read)),
			at("nod_6", "https://evil.example/locked", read),
		},
	}
}
