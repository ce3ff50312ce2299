package pages

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// consoleSamples returns console pages with every kind of part.
func consoleSamples() []sample {
	page := func(name string, change func(*Console)) sample {
		v := Console{
			Menu: []ConsoleGroup{
				{Name: "Access", Links: []ConsoleLink{
					{Name: "People", URL: "/admin/user/list", Current: true}, {Name: "Clients",
						URL: "/admin/client/list"},
				}},
				{Name: "Monitoring", Links: []ConsoleLink{{Name: "Attempts", URL: "/admin/attempt/list"}}},
			},
			HomeURL: "/admin", Username: "alice", Role: "administrator", AccountURL: "/account",
			SignOut: AccountForm{Action: "/logout", Step: "sealed-step"}, Title: "People",
		}
		change(&v)
		return sample{name, func(p *Pages, w http.ResponseWriter) { p.Console(w, http.StatusOK, v) }}
	}
	at := time.Date(2026, 11, 23, 15, 2, 0, 0, time.UTC)
	long := "mcp_" + strings.Repeat("kD93jfkw0d", 12)
	facts := []ConsoleFact{
		{Name: "Name", Value: ConsoleCell{Text: "bob"}},
		{Name: "ID", Value: ConsoleCell{Text: long, Code: true}},
		{Name: "Created", Value: ConsoleCell{At: at}},
		{Name: "Scopes", Value: ConsoleCell{List: []string{"mcp", "notes:read"}, Code: true}},
		{Name: "Client", Value: ConsoleCell{Text: "Claude", URL: "/admin/client/show?id=x"}},
	}
	return []sample{
		page("console-list", func(v *Console) {
			v.Lead = "Who can sign in here."
			v.Acts = []ConsoleLink{{Name: "Invite", URL: "/admin/user/invite"}}
			v.Parts = []ConsolePart{
				ConsoleForm{Action: "/admin/user/list", Button: "Search", Search: true, Fields: []ConsoleField{
					{Name: "name", Label: "Name", Type: "text"}, {Name: "failed", Label: "Failed", Type: "check"},
					{
						Name: "role", Label: "Role", Type: "select",
						Options: []ConsoleOption{{"", "No role"}, {"auditor", "Auditor"}},
					},
				}},
				ConsoleTable{
					Name: "People", Columns: []string{"Name", "State", "Client", "Created"},
					Rows: [][]ConsoleCell{
						{
							{Text: "bob", URL: "/admin/user/show?name=bob"},
							{Badges: []ConsoleBadge{{"disabled", "bad"}}},
							{Text: long, Code: true}, {At: at},
						},
						{{Text: "carol", URL: "/admin/user/show?name=carol"}, {}, {}, {At: at}},
					},
					NextURL: "/admin/user/list?after=carol", FirstURL: "/admin/user/list",
				},
				ConsoleTable{Title: "Grants", Name: "Grants", Empty: ConsoleHint{
					Text: "There is none yet.", Command: "mcp-authd grant list",
				}},
			}
		}),
		page("console-one", func(v *Console) {
			v.Title, v.Trail = "bob", []ConsoleLink{{Name: "People", URL: "/admin/user/list"}}
			v.Badges = []ConsoleBadge{{"disabled", "bad"}, {"ok", "good"}, {"waits", "warn"}, {"auditor", ""}}
			v.Acts = []ConsoleLink{{Name: "Enable", URL: "/a"}, {Name: "Delete", URL: "/b", Grave: true}}
			v.Done = "Done: Disable an account (bob)."
			v.Parts = []ConsolePart{
				ConsoleFacts{Facts: facts}, ConsoleFacts{Title: "More", Facts: facts[:1]},
			}
		}),
		page("console-form", func(v *Console) {
			v.Title, v.Problem = "Add a client", "The name is taken."
			v.Parts = []ConsolePart{
				ConsoleForm{
					Title: "Client", Lead: "It gets a secret.", Action: "/admin/client/add",
					Step: "sealed-step", Button: "Add",
					BackURL: "/admin/client/list",
					Fields: []ConsoleField{
						{Name: "name", Label: "Name", Hint: "what people read", Type: "text", Required: true,
							Value: "Notes"},
						{Name: "redirect_uris", Label: "Redirect URIs", Type: "area", Hint: "one in each line"},
						{Name: "dpop", Label: "DPoP", Type: "check", Checked: true, Hint: "demanded"},
						{
							Name: "role", Label: "Role", Type: "select", Value: "auditor",
							Options: []ConsoleOption{{"", "No role"}, {"auditor", "Auditor"}},
						},
						{Name: "password", Label: "Password", Type: "password"},
						{Name: "scopes", Label: "Scopes", Type: "rows", Hint: "asked for", Rows: []ConsoleRow{{
							Name: "Scope 1", Fields: []ConsoleField{
								{Name: "scopes.0.name", Label: "Name", Type: "text", Value: "notes", Required: true},
								{
									Name: "scopes.0.every_call", Label: "Needed by every call", Type: "check",
									Checked: true,
								},
							},
						}}},
					},
				},
				ConsoleForm{
					Action: "/admin/client/delete", Step: "sealed-step", Button: "Delete", Grave: true,
					Goes: []string{"the client", "3 grants of 2 people"},
				},
			}
		}),
		page("console-overview", func(v *Console) {
			v.Title, v.Overview, v.Live, v.HereURL = "Overview", true, true, "/admin"
			v.Parts = []ConsolePart{
				ConsoleFirst{Title: "First steps", Steps: []ConsoleTodo{
					{Name: "Add an MCP server", Text: "Clients need one.", URL: "/admin/resource/add", Done: true},
					{Name: "Invite a user", Text: "Send a link.", URL: "/admin/user/invite"},
					{Name: "Connect a client", Text: "Try it here:", Command: "mcp-authd login MCP_URL"},
				}},
				ConsoleFindings{Title: "What needs attention", Findings: []ConsoleFinding{
					{Tone: "bad", Mark: "failure", Name: "issuer", Text: "It is another one.", Next: "Set issuer."},
					{Tone: "warn", Mark: "attempts", Name: "3 attempts failed", URL: "/admin/attempt/list"},
					{Name: "clock"},
				}},
				ConsoleFindings{None: "Nothing."},
				ConsoleTiles{Title: "How much", Tiles: []ConsoleTile{
					{"people", "1,204", "3 disabled", "/admin/user/list", ""},
					{"failed attempts", "12", "", "/admin/attempt/list", "warn"},
				}},
			}
		}),
		page("console-attempt", func(v *Console) {
			v.Title, v.Badges = "Attempt K7PX2M4Q", []ConsoleBadge{{"failed", "bad"}}
			d := ConsoleDifference{At: 21, Same: "http://127.0.0.1:4242", Got: "/callback/ ", Want: ""}
			v.Parts = []ConsolePart{
				ConsoleVerdict{
					Tone: "bad", Text: "The client sent a redirect URI that is not registered for it.", Known: "It is known.",
					Difference: &d,
					Advice: []ConsoleAdvice{
						{"The person", "Nothing.", false}, {"The client's author", "Send it.", true},
					},
				},
				ConsoleVerdict{Text: "It goes on."},
				ConsoleText{Title: "Checkpoint", Lead: "Signed.", Text: "auth.example.com/audit\n12\n" + long + "\n"},
				ConsoleSteps{Title: "What took place", Note: "2 steps are left out.", Steps: []ConsoleStep{
					{
						ID: "step-1", Name: "Authorization request", At: at, After: "+0 ms", Text: "GET /authorize",
						Badges: []ConsoleBadge{{"400 invalid_request", "bad"}}, Decided: true, Facts: facts,
						Detail:      "Request and answer",
						Differences: []ConsoleDifference{{Name: "redirect_uri", At: 3, Same: "a", Want: long}},
					},
					{ID: "step-2", Name: "Token", At: at, After: "+1.2 s", Text: "POST /token", Detail: "More"},
				}},
			}
		}),
		page("console-once", func(v *Console) {
			v.Title, v.Overview = "A secret", true
			v.Parts = []ConsolePart{
				ConsoleSecret{Title: "Copy this now", Text: "It is shown once.", Secrets: []ConsoleFact{facts[1]}},
			}
		}),
	}
}

// OB-10: a console page is complete, is in English for any browser language, and cannot be framed.
// It runs no script except the one for live updates.
func TestConsole(t *testing.T) {
	p := newPages(t, Config{})
	for _, s := range consoleSamples() {
		w := record(p.For("de"), s.show)
		body, csp := w.Body.String(), w.Header().Get("Content-Security-Policy")
		if !strings.Contains(body, `<html lang="en"`) || !strings.Contains(body, "</html>") {
			t.Errorf("OB-10: %s must be a whole page in English: %.300s", s.name, body)
		}
		live := s.name == "console-overview"
		if strings.Contains(body, "<script") != live || strings.Contains(csp, "script-src 'self'") != live {
			t.Errorf("OB-10: %s has a script: %s", s.name, csp)
		}
		if !strings.Contains(csp, "frame-ancestors 'none'") || w.Header().Get("Cross-Origin-Opener-Policy") == "" {
			t.Errorf("OB-10: %s can be framed, or reached from a window that opened it", s.name)
		}
	}
}

// OB-10: names chosen by clients and users are plain text on a page, and never run or become links.
func TestConsoleShowsNamesAsText(t *testing.T) {
	bad := `<img src=x onerror=alert(1)>"` + "\u202e"
	cell := ConsoleCell{Text: bad, Code: true, URL: "javascript:alert(1)"}
	fact := []ConsoleFact{{Name: bad, Value: cell}, {Name: bad, Value: ConsoleCell{List: []string{bad}}}}
	body := record(newPages(t, Config{}), func(p *Pages, w http.ResponseWriter) {
		p.Console(w, http.StatusOK, Console{
			Title: bad, Username: bad, Lead: bad, Done: bad, Problem: bad, Badges: []ConsoleBadge{{Text: bad}},
			Trail: []ConsoleLink{{Name: bad, URL: "javascript:alert(1)"}},
			Parts: []ConsolePart{
				ConsoleFacts{Title: bad, Facts: fact},
				ConsoleTable{Title: bad, Lead: bad, Name: bad, Columns: []string{bad}, Rows: [][]ConsoleCell{{cell}}},
				ConsoleSecret{Title: bad, Text: bad, Secrets: fact},
				ConsoleText{Title: bad, Lead: bad, Text: bad + "\n" + bad},
				ConsoleTiles{Title: bad, Tiles: []ConsoleTile{{bad, bad, bad, "javascript:alert(1)", ""}}},
				ConsoleFindings{Title: bad, Findings: []ConsoleFinding{{Mark: bad, Name: bad, Text: bad, Next: bad}}},
				ConsoleVerdict{
					Text: bad, Known: bad, Advice: []ConsoleAdvice{{bad, bad, true}},
					Difference: &ConsoleDifference{Name: bad, Same: bad, Got: bad, Want: bad},
				},
				ConsoleSteps{Title: bad, Note: bad, Steps: []ConsoleStep{{
					ID: "step-1", Name: bad, After: bad, Text: bad, Facts: fact, Badges: []ConsoleBadge{{Text: bad}},
				}}},
				ConsoleForm{Title: bad, Lead: bad, Fields: []ConsoleField{{Name: "x", Label: bad, Hint: bad,
					Value: "as it is", Type: "text"}}},
			},
		})
	}).Body.String()
	for _, no := range []string{"<img", "javascript:", "\u202e"} {
		if strings.Contains(body, no) {
			t.Errorf("OB-10: the page has %q: %s", no, body)
		}
	}
}
