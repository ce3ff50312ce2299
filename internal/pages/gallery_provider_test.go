package pages

import (
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sentence"
)

func withdrawn(provider string) Text {
	return Told(sentence.New("{provider} has withdrawn your sign-in. Please sign in again.", "ended_revoked",
		"provider", provider))
}

// delegated returns the pages for users who sign in at a provider.
func delegated() []sample {
	login := Login{
		Action: "/login", Step: "sealed-step", Client: claude, Resource: notes, Choices: sampleChoices("")[:3],
	}
	chooser := login
	chooser.Choices, chooser.NoPassword, chooser.EndNotice = sampleChoices(""), true, withdrawn("Google")
	failed := Failed{
		Fault: FaultProvider,
		Message: Told(sentence.New("{provider} could not be reached. Please try again in a minute.", "unreachable",
			"provider", "Google")), Code: "temporarily_unavailable",
		RequestID: "0192f3c1a7", Provider: google,
		Client: claude, RetryURL: "/authorize?client_id=x&provider=google",
		ReturnURL: "https://claude.ai/api/mcp/auth_callback?error=temporarily_unavailable",
	}
	broken := failed
	broken.Message, broken.Code, broken.Fault = Told(sentence.New("{provider} does not accept this server. "+
		"Please tell the operator of this server that its registration at {provider} needs attention.", "misconfigured",
		"provider", "Google")),
		"server_error", FaultSetup
	alone := Failed{
		Message: Told(sentence.New("Your account is not allowed to sign in here.", "")),
		Code:    "access_denied", Provider: google, RetryURL: "/",
	}
	other := Failed{
		Message: Told(sentence.New("The account that is signed in at {provider} is not the one that is connected here.",
			"other_account", "provider", "Google")), Code: "access_denied",
		Provider: google,
		Came:     "mallory@example.com", Expected: "alice@example.com", RetryURL: "/connect/sealed",
	}
	claim := Claim{
		Action: "/claim", Step: "sealed-step", Provider: google, Label: "mallory@example.com",
		Subject: "110169484474386276334", Username: "alice",
	}
	confirm := Confirm{
		Action: "/consent", Step: "sealed-step", Request: sampleConsent().Request, Username: "alice@google",
		Provider: google, Label: "alice@example.com",
	}
	connect := Connect{
		Action: "/connect/sealed", Step: "sealed-step", Resource: notes, Provider: google,
		Scopes:   []string{"https://www.googleapis.com/auth/calendar.readonly", "openid"},
		Username: "alice", SignOutAction: "/logout", SignOutStep: "sealed-sign-out",
	}
	home := Home{
		Issuer: "https://auth.example.com", Username: "alice@google", SignOutAction: "/logout", Step: "sealed-step",
		Resources: []Party{notes}, AccountURL: "/account",
	}
	return []sample{
		{"login-providers", func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, login) }},
		{"login-chooser", func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, chooser) }},
		{"login-forms", func(p *Pages, w http.ResponseWriter) {
			p.Login(w, 200, Login{Action: "/login", Step: "sealed-step", Choices: sampleChoices("sealed-3")[:2]})
		}},
		{"providerconsent", sampleProviderConsent().with(func(*ProviderConsent) {})},
		{"providerconsent-loopback", sampleProviderConsent().with(func(d *ProviderConsent) {
			d.Provider, d.OtherURL, d.EndNotice = company, "", withdrawn("Example Company Directory")
			d.RedirectHost, d.RedirectURI, d.RedirectIsLoopback = "127.0.0.1:33418", "http://127.0.0.1:33418/", true
		})},
		{"providerconsent-unread", sampleProviderConsent().with(func(d *ProviderConsent) {
			d.Unread, d.Request = true,
				Request{Client: Party{Host: "app.example.com", URL: "https://app.example.com/client.json"},
					Resource: notes}
		})},
		{"confirm", func(p *Pages, w http.ResponseWriter) { p.Confirm(w, confirm) }},
		{"paused", func(p *Pages, w http.ResponseWriter) { p.Paused(w, samplePaused()) }},
		{"paused-device", func(p *Pages, w http.ResponseWriter) {
			v := samplePaused()
			v.Device, v.RedirectHost, v.SelfRegistered = true, "", true
			p.Paused(w, v)
		}},
		{"account-paused", func(p *Pages, w http.ResponseWriter) {
			v := sampleAccount()
			v.Apps.Apps, v.Apps.NextURL, v.Done = nil, "", Say("account.done_paused")
			v.Apps.MorePausedURL = "/account?paused=pau_1"
			v.Apps.Paused = []PausedApp{{
				ID: "pau_1", Client: Party{Name: "Claude"}, Server: notes, Since: samplePaused().Since,
			}}
			p.Account(w, 200, v)
		}},
		{"confirm-again", func(p *Pages, w http.ResponseWriter) {
			v := confirm
			v.Label, v.AnotherURL = "", "/authorize?prompt=select_account"
			p.Confirm(w, v)
		}},
		{"failed", func(p *Pages, w http.ResponseWriter) { p.Failed(w, 503, failed) }},
		{"failed-setup", func(p *Pages, w http.ResponseWriter) { p.Failed(w, 500, broken) }},
		{"failed-other", func(p *Pages, w http.ResponseWriter) { p.Failed(w, 403, other) }},
		{"claim", func(p *Pages, w http.ResponseWriter) { p.Claim(w, claim) }},
		{"failed-alone", func(p *Pages, w http.ResponseWriter) { p.Failed(w, 403, alone) }},
		{"connect", func(p *Pages, w http.ResponseWriter) { p.Connect(w, connect) }},
		{"connected",
			func(p *Pages, w http.ResponseWriter) { p.Connected(w, Connected{Provider: google, Resource: notes}) }},
		{"connected-declined", func(p *Pages, w http.ResponseWriter) {
			p.Connected(w, Connected{Provider: google, Resource: notes, Declined: true})
		}},
		{"account", func(p *Pages, w http.ResponseWriter) { p.Account(w, 200, sampleAccount()) }},
		{"account-empty", func(p *Pages, w http.ResponseWriter) {
			v := sampleAccount()
			v.You.Ways, v.Apps.Apps, v.Apps.NextURL, v.Done = bareWays, nil, "", Text{}
			v.SignIns.SignIns, v.SignIns.More, v.SignIns.Others = v.SignIns.SignIns[:1], false, false
			p.Account(w, 200, v)
		}},
		{"account-last", func(p *Pages, w http.ResponseWriter) {
			v := sampleAccount()
			v.Problem, v.Done, v.You.Ways = Say("ways.last"), Text{}, lastWays
			p.Account(w, 409, v)
		}},
		{"account-news", func(p *Pages, w http.ResponseWriter) {
			v := sampleAccount()
			v.News, v.Done = sampleNotices, Text{}
			p.Account(w, 200, v)
		}},
		{"helpers", func(p *Pages, w http.ResponseWriter) { p.Helpers(w, sampleHelpers()) }},
		{"helpers-none", func(p *Pages, w http.ResponseWriter) {
			v := sampleHelpers()
			v.Helpers, v.Done = nil, Say("account.done_cut")
			p.Helpers(w, v)
		}},
		{"stopeverything", func(p *Pages, w http.ResponseWriter) {
			p.StopEverything(w, StopEverything{AccountForm{"/account/stop", "sealed-step"}, "/account"})
		}},
		{"home-accounts", func(p *Pages, w http.ResponseWriter) { p.Home(w, home) }},
		{"home-choices", func(p *Pages, w http.ResponseWriter) {
			p.Home(w, Home{
				Issuer: "https://auth.example.com", Resources: []Party{notes}, SignIn: sampleChoices("sealed-3")[:2],
				EndNotice: withdrawn("Google")})
		}},
	}
}

func samplePaused() Paused {
	return Paused{
		Action: "/paused", Step: "sealed-step", Request: sampleConsent().Request, Username: "alice@google",
		Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}
