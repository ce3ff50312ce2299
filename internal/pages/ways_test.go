package pages

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// passkeyOptions are the options of a ceremony that pages use.
const passkeyOptions = `{"challenge":"bm90IGEgY2hhbGxlbmdl","rpId":"auth.example.com","userVerification":"required"}`

// waySamples returns the pages about authentication methods.
func waySamples() []sample {
	passkey := &Passkey{Action: "/login/second", Step: "sealed-passkey", Options: passkeyOptions}
	second := Second{
		Action: "/login/second", Step: "sealed-step", Username: "alice", Passkey: passkey, App: true, Recovery: true,
	}
	wrong := second
	wrong.Passkey, wrong.Problem = nil, Say("second.wrong")
	signedIn := second
	signedIn.SignedIn, signedIn.Recovery = true, false
	prove := Prove{
		Action: "/prove", Step: "sealed-step", Username: "alice", Passkey: passkey, Password: true, App: true,
		BackURL: "/account",
	}
	login := Login{
		Action: "/login", Step: "sealed-step", RecoveryAction: "/login/recovery", RemoteAction: "/login/device",
		Passkey: &Passkey{Action: "/login/passkey", Step: "sealed-passkey", Options: passkeyOptions},
	}
	earlier := login
	earlier.Earlier = []Passkey{
		{Action: "/login/passkey", Step: "sealed-earlier", Options: passkeyOptions, Host: "login.example.com"},
	}
	unknown := login
	unknown.Problem, unknown.Passkey = Say("passkey.unknown"), &Passkey{
		Action: "/login/passkey", Step: "sealed-passkey", Options: passkeyOptions, Unknown: "bm90IGtub3du",
	}
	codes := RecoveryCodes{
		Codes: []string{"7QF3D-0M5RB-K2X9P-E8WTA", "ABCDE-FGHJK-MNPQR-STVWX"},
		Title: "https://auth.example.com · alice", BackURL: "/account",
	}
	app := AddApp{
		Action: "/account/app", Step: "sealed-step",
		QR:     QR{Path: "M4 4h7v1h-7zM4 5h1v1h-1z", Size: 29, Label: Say("addapp.picture")},
		Secret: []string{"JBSW", "Y3DP", "EHPK", "3PXP"}, Name: "Phone", BackURL: "/account",
	}
	appWrong := app
	appWrong.Problem = Say("addapp.wrong")
	return []sample{
		{"login-passkey", func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, login) }},
		{"login-passkey-earlier", func(p *Pages, w http.ResponseWriter) { p.Login(w, 200, earlier) }},
		{"login-passkey-unknown", func(p *Pages, w http.ResponseWriter) { p.Login(w, 401, unknown) }},
		{"second", func(p *Pages, w http.ResponseWriter) { p.Second(w, 200, second) }},
		{"second-wrong", func(p *Pages, w http.ResponseWriter) { p.Second(w, 401, wrong) }},
		{"second-signed-in", func(p *Pages, w http.ResponseWriter) { p.Second(w, 200, signedIn) }},
		{"second-none", func(p *Pages, w http.ResponseWriter) { p.Second(w, 200, Second{Username: "alice"}) }},
		{"prove", func(p *Pages, w http.ResponseWriter) { p.Prove(w, 200, prove) }},
		{"addpasskey", func(p *Pages, w http.ResponseWriter) {
			p.AddPasskey(w, 200, AddPasskey{
				Passkey: Passkey{Action: "/account/passkey", Step: "sealed-step", Options: passkeyOptions},
				Name:    "Firefox on Linux", BackURL: "/account",
			})
		}},
		{"addapp", func(p *Pages, w http.ResponseWriter) { p.AddApp(w, 200, app) }},
		{"addapp-wrong", func(p *Pages, w http.ResponseWriter) { p.AddApp(w, 400, appWrong) }},
		{"recoverycodes", func(p *Pages, w http.ResponseWriter) { p.RecoveryCodes(w, codes) }},
		{"recoverycodes-ask", func(p *Pages, w http.ResponseWriter) {
			p.RecoveryCodes(w, RecoveryCodes{
				Action: "/account/recovery", Step: "sealed-step", Left: 3, BackURL: "/account",
			})
		}},
		{"recoverycodes-second", func(p *Pages, w http.ResponseWriter) {
			p.RecoveryCodes(w, RecoveryCodes{
				Action: "/account/recovery", Step: "sealed-step", Second: true, BackURL: "/account",
			})
		}},
		{"newpassword", func(p *Pages, w http.ResponseWriter) {
			p.NewPassword(w, 400, NewPassword{
				Action: "/account/password", Step: "sealed-step", Username: "alice", Problem: Say("newpassword.short"),
				BackURL: "/account",
			})
		}},
		{"wayadded", func(p *Pages, w http.ResponseWriter) {
			p.WayAdded(w, WayAdded{Name: "Phone", RecoveryURL: "/account/recovery", BackURL: "/account"})
		}},
		{"enrolfirst", func(p *Pages, w http.ResponseWriter) {
			p.EnrolFirst(w, EnrolFirst{PasskeyURL: "/account/passkey?to=sealed", AppURL: "/account/app?to=sealed"})
		}},
		{"enrolfirst-demanded", func(p *Pages, w http.ResponseWriter) {
			p.EnrolFirst(w, EnrolFirst{
				PasskeyURL: "/account/passkey?to=sealed", AppURL: "/account/app?to=sealed", Demanded: true,
			})
		}},
		{"enrolfirst-passkey", func(p *Pages, w http.ResponseWriter) {
			p.EnrolFirst(w, EnrolFirst{PasskeyURL: "/account/passkey?to=sealed", Demanded: true})
		}},
	}
}

// sampleWays returns the authentication methods of a user with several of each kind.
func sampleWays() Ways {
	added := time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)
	return Ways{
		Action: "/account/ways", PasskeyURL: "/account/passkey", AppURL: "/account/app",
		RecoveryURL: "/account/recovery", Recovery: 7, RecoveryStep: "sealed-recovery",
		Password: &PasswordWay{URL: "/account/password", Step: "sealed-password"},
		Accepted: []string{`{"rpId":"auth.example.com","userId":"dXNyXzE","allAcceptedCredentialIds":["YQ"]}`},
		List: []Way{
			{ID: "way_1", Name: "Phone", Step: "sealed-1", Added: added, Used: added.Add(48 * time.Hour)},
			{ID: "way_2", Name: "Old laptop", Step: "sealed-2", Added: added, Elsewhere: "login.example.com"},
			{ID: "way_3", Name: "Work phone", Step: "sealed-3", App: true, Added: added},
		},
		Accounts: []Account{
			{ID: "acc_1", Provider: google, Label: "alice@example.com", Action: "/disconnect", Step: "sealed-1"},
			{ID: "acc_2", Provider: Provider{Name: "github"}, Label: "alice-with-a-rather-long-name-over-there",
				Gone: true, Action: "/disconnect", Step: "sealed-2"},
		},
		Connect: sampleChoices("sealed-3")[2:4],
	}
}

var (
	lastWays = Ways{
		Action: "/account/ways", PasskeyURL: "/account/passkey", AppURL: "/account/app",
		RecoveryURL: "/account/recovery", Accounts: []Account{{ID: "acc_1", Provider: google, Label: "alice"}},
	}
	bareWays = Ways{
		Action: "/account/ways", AppURL: "/account/app", RecoveryURL: "/account/recovery",
		Refused:  Say("ways.passkeys_address"),
		Password: &PasswordWay{URL: "/account/password", Step: "sealed-password"},
	}
)

// PE-12: only passkeys need script, and pages that offer them explain that to users without it.
func TestScriptIsExplained(t *testing.T) {
	p := newPages(t, Config{})
	for _, s := range waySamples() {
		body := record(p, s.show).Body.String()
		if strings.Contains(body, "data-passkey=") && !strings.Contains(body, "<noscript>") {
			t.Errorf("%s asks for a passkey and says nothing to people without script", s.name)
		}
	}
}

// PE-06: the codes can be saved as a plain text file without script.
func TestFileOfCodes(t *testing.T) {
	file := string(RecoveryCodes{Codes: []string{"AB", "C\"<D"}, Title: "a & b"}.File())
	if want := "data:text/plain;charset=utf-8,a%20&%20b%0D%0A%0D%0AAB%0D%0AC%22%3CD%0D%0A"; file != want {
		t.Errorf("got %s, want %s", file, want)
	}
}
