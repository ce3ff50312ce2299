package pages

import "time"

func sampleAccount() AccountPage {
	at := time.Date(2026, 11, 20, 9, 41, 0, 0, time.UTC)
	windows := Say("account.agent", "browser", "Chrome", "system", "Windows")
	return AccountPage{
		Done: Say("account.done_narrowed"),
		You: AccountYou{
			ConsoleURL: "/admin",
			Username:   "alice", Back: "/account", Ways: sampleWays(), SignOut: AccountForm{"/logout", "sealed-2"},
		},
		Apps: AccountApps{
			AccountForm: AccountForm{"/account/connections", "sealed-step"},
			Apps: []ConnectedApp{{
				ID: "grt_VP72f5mdC9", Client: claude, Connections: 1, Servers: []ConnectedServer{{
					ID: "grt_VP72f5mdC9", Server: notes, Username: "alice", StaySignedIn: true,
					Scopes: []Scope{
						{Name: "notes:read", Description: "Read your notes"},
						{Name: "notes:delete", Description: "Delete your notes", Dangerous: true},
					},
					Account: Account{ID: "acc_1", Provider: google, Label: "alice@example.com"},
					Given:   Event{At: at, Agent: windows, From: "203.0.113.0/24"}, FirstUsed: at.Add(time.Minute),
					Used:     Event{At: at.Add(25 * time.Hour), From: "198.51.100.0/24"},
					LastCall: Call{Tool: "notes_search", At: at.Add(25*time.Hour + time.Minute)},
					Handed:   Handed{3, "/account/helpers?grant=grt_VP72f5mdC9"},
				}},
			}, {
				ID: "grt_VP72f5mdC8", Client: Party{URL: "mcp_1"}, SelfRegistered: true, Connections: 2,
				Servers: []ConnectedServer{{
					ID: "grt_VP72f5mdC8", Server: notes, Username: "alice", Given: Event{At: at}, FirstUsed: at,
					Used: Event{At: at}, LastCall: Call{At: at}, Paused: true,
				}},
			}, {
				ID: "grt_VP72f5mdC4", Client: Party{Name: "Agent", URL: "agent"}, Connections: 1,
				Servers: []ConnectedServer{{
					ID: "grt_VP72f5mdC4", Server: notes, Username: "alice",
					By:     Organization{Entry: "acme", Host: "acme.okta.com"},
					Scopes: []Scope{{Name: "notes:read", Description: "Read your notes"}},
					Given:  Event{At: at}, FirstUsed: at, Used: Event{At: at},
				}},
			}, sampleSeveral(at)},
			NextURL: "/account?before=grt_VP72f5mdC4",
		},
		Keys: sampleKeys(at),
		SignIns: AccountSignIns{
			AccountForm: AccountForm{"/account/sign-ins", "sealed-step"}, More: true, Others: true,
			SignIns: []SignIn{
				{ID: "ses_1", Here: true, Agent: windows, From: "203.0.113.0/24", Begun: at, Seen: at.Add(time.Hour)},
				{ID: "ses_2", Begun: at, Seen: at},
			},
		},
		Stop:    AccountForm{"/account/stop", "sealed-step"},
		HomeURL: "/",
	}
}

// sampleSeveral is an application at two MCP servers, at one of them under another name.
func sampleSeveral(at time.Time) ConnectedApp {
	return ConnectedApp{
		ID: "grt_VP72f5mdC3", Client: Party{Name: "Desk"}, SelfRegistered: true, Connections: 4, Several: true,
		Used: at.Add(time.Hour),
		Servers: []ConnectedServer{{
			ID: "grt_VP72f5mdC3", Server: notes, Username: "alice",
			Scopes: []Scope{{Name: "notes:read", Description: "Read your notes"}},
			Given:  Event{At: at}, FirstUsed: at, Used: Event{At: at.Add(time.Hour)},
		}, {
			ID: "grt_VP72f5mdC2", Client: Party{Name: "Desk 2", Host: "desk.example"}, Paused: true, Username: "alice",
			Server: Party{Name: "Mail", Host: "mail.example.com", URL: "https://mail.example.com/mcp"},
			Given:  Event{At: at}, FirstUsed: at, Used: Event{At: at},
		}},
	}
}
