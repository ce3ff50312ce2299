package attempt

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

// Fault names why an attempt failed. The names are a stable contract.
type Fault string

// The faults.
const (
	MetadataWrongPath     Fault = "metadata_wrong_path"
	MetadataOnly          Fault = "metadata_only"
	RegistrationRefused   Fault = "registration_refused"
	RedirectSchemeRefused Fault = "redirect_scheme_refused"
	RedirectInClear       Fault = "redirect_in_clear"
	RegistrationOnly      Fault = "registration_only"
	ClientUnknown         Fault = "client_unknown"
	DocumentUnusable      Fault = "document_unusable"
	RedirectURIUnknown    Fault = "redirect_uri_unknown"
	ResourceUnknown       Fault = "resource_unknown"
	PKCEMissing           Fault = "pkce_missing"
	HostUnknown           Fault = "host_unknown"
	FormLost              Fault = "form_lost"
	FormRefused           Fault = "form_refused"
	RequestRefused        Fault = "request_refused"
	PersonDidNotReturn    Fault = "person_did_not_return"
	PersonRefused         Fault = "person_refused"
	PersonNotPermitted    Fault = "person_not_permitted"
	SignInRefused         Fault = "signin_refused"
	ProviderRefused       Fault = "provider_refused"
	ProviderDidNotReturn  Fault = "provider_did_not_return"
	CodeNotRedeemed       Fault = "code_not_redeemed"
	CodeUnknown           Fault = "code_unknown"
	CodeSpent             Fault = "code_spent"
	CodeExpired           Fault = "code_expired"
	VerifierWrong         Fault = "verifier_wrong"
	RedirectURIChanged    Fault = "redirect_uri_changed"
	CredentialsWrong      Fault = "credentials_wrong"
	RefreshTokenSpent     Fault = "refresh_token_spent"
	GrantEnded            Fault = "grant_ended"
	AccessPaused          Fault = "access_paused"
	ApplicationHeld       Fault = "application_held"
	ChallengeOnly         Fault = "challenge_only"
	AuthorizationLost     Fault = "authorization_lost"
	AudienceWrong         Fault = "audience_wrong"
	TokenNotOurs          Fault = "token_foreign"
	TokenNotRefreshed     Fault = "token_expired"
	AccessEnded           Fault = "token_ended"
	ApprovalWaiting       Fault = "approval_waiting"
	ScopeMissing          Fault = "scope_missing"
	AuthenticationMissing Fault = "authentication_missing"
	CallRefused           Fault = "call_refused"
	ServerFailed          Fault = "server_failed"
)

// Explained describes a fault: a summary, who can fix it, and the advice for each side.
type Explained struct {
	Fault Fault  `json:"fault"`
	What  string `json:"what"`
	Whose Whose  `json:"whose"`
	Advice
}

//go:embed faults.json
var faultsFile []byte

// Faults returns the explanation of each fault, in the order of an attempt. Its source is
// faults.json, as for the table in docs/attempts.md.
var Faults = sync.OnceValue(func() (all []Explained) {
	mustRead(faultsFile, &all)
	return all
})

// mustRead parses an embedded file, which a test also parses.
func mustRead(file []byte, into any) {
	if err := json.Unmarshal(file, into); err != nil {
		panic(err)
	}
}

// verdict returns the verdict for an attempt with the fault.
func (f Fault) verdict(text string) Verdict {
	e := f.explained()
	return Verdict{Text: text, Fault: f, Whose: e.Whose, Advice: e.Advice}
}

func (f Fault) explained() Explained {
	i := slices.IndexFunc(Faults(), func(e Explained) bool { return e.Fault == f })
	if i < 0 {
		return Explained{Fault: f}
	}
	return Faults()[i]
}
