package web

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
				ID: "grt_VP72f5mdC9", Client: claude, Server: notes, Username: "alice", StaySignedIn: true,
				Scopes: []Scope{
					{Name: "notes:read", Description: "Read your notes"},
					{Name: "notes:delete", Description: "Delete your notes", Dangerous: true},
				},
				Account: Account{ID: "acc_1", Provider: google, Label: "alice@example.com"},
				Given:   Event{At: at, Agent: windows, From: "203.0.113.0/24"}, FirstUsed: at.Add(time.Minute),
				Used:     Event{At: at.Add(25 * time.Hour), From: "198.51.100.0/24"},
				LastCall: Call{Tool: "notes_search", At: at.Add(25*time.Hour + time.Minute)},
				Handed:   Handed{3, "/account/helpers?grant=grt_VP72f5mdC9"},
			}, {
				ID: "grt_VP72f5mdC8", Client: Party{URL: "mcp_1"}, SelfRegistered: true, Server: notes,
				Username: "alice",
				Given:    Event{At: at}, FirstUsed: at, Used: Event{At: at}, LastCall: Call{At: at}, Paused: true,
			}, {
				ID: "grt_VP72f5mdC4", Client: Party{Name: "Agent", URL: "agent"}, Server: notes, Username: "alice",
				By:     Organization{Entry: "acme", Host: "acme.okta.com"},
				Scopes: []Scope{{Name: "notes:read", Description: "Read your notes"}},
				Given:  Event{At: at}, FirstUsed: at, Used: Event{At: at},
			}},
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
