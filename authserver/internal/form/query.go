package form

import (
	"net/url"
	"slices"
	"strings"
)

// ParamProvider is an extension parameter of /authorize: the id of the provider to sign in at, or
// AnyProvider for the page with the choice.
const (
	ParamProvider = "provider"
	AnyProvider   = "*"
)

// ParamAccount is an extension parameter of /authorize. With AnotherAccount the user signs in even
// if another user is signed in. With ChosenAccount the user has just chosen an account.
const (
	ParamAccount   = "account"
	AnotherAccount = "another"
	ChosenAccount  = "chosen"
)

// ParamClearance is an extension parameter of /authorize. With ToldClearance the user has seen who
// decides about the call that the request names.
const (
	ParamClearance = "clearance"
	ToldClearance  = "told"
)

// ParamResume is an extension parameter of /authorize that contains a sealed pushed request.
const ParamResume = "resume"

// Query is an encoded authorization request, as in URLs and forms.
type Query string

// Values returns the parameters. If the query is invalid, it returns the parameters before the
// error.
func (q Query) Values() url.Values {
	v, _ := url.ParseQuery(string(q))
	return v
}

// Prompts returns the values of the parameter prompt (OpenID Connect Core §3.1.2.1).
func (q Query) Prompts() []string { return strings.Fields(q.Values().Get("prompt")) }

// SignedIn returns the request to continue with after a sign-in, without the parameters that
// required the sign-in.
func (q Query) SignedIn() Query {
	v := q.Values()
	v.Del("max_age")
	v.Del("login_hint")
	v.Del(ParamProvider)
	v.Set(ParamAccount, ChosenAccount)
	left := slices.DeleteFunc(q.Prompts(), func(p string) bool { return p == "login" || p == "select_account" })
	if v.Del("prompt"); len(left) > 0 {
		v.Set("prompt", strings.Join(left, " "))
	}
	return Query(v.Encode())
}

// Chosen returns the request of a user who has chosen a signed-in account.
func (q Query) Chosen() Query {
	v := q.Values()
	v.Del("login_hint")
	v.Set(ParamAccount, ChosenAccount)
	left := slices.DeleteFunc(q.Prompts(), func(p string) bool { return p == "select_account" })
	if v.Del("prompt"); len(left) > 0 {
		v.Set("prompt", strings.Join(left, " "))
	}
	return Query(v.Encode())
}

// Told returns the request of a user who has seen who decides about the call.
func (q Query) Told() Query {
	v := q.Values()
	v.Set(ParamClearance, ToldClearance)
	return Query(v.Encode())
}

// Choosing returns the request with prompt=select_account.
func (q Query) Choosing() Query {
	v, prompts := q.Values(), slices.DeleteFunc(q.Prompts(), func(p string) bool { return p == "none" })
	if !slices.Contains(prompts, "select_account") {
		prompts = append(prompts, "select_account")
	}
	v.Set("prompt", strings.Join(prompts, " "))
	return Query(v.Encode())
}

// AnotherAccount returns the request of a user who signs in with an account that is not signed in
// yet.
func (q Query) AnotherAccount() Query {
	v := q.Choosing().Values()
	v.Set(ParamAccount, AnotherAccount)
	return Query(v.Encode())
}

// Consented returns the request for the consent form, without the parameters that required the
// page.
func (q Query) Consented() Query {
	v := q.Values()
	v.Del("prompt")
	v.Del("login_hint")
	v.Del(ParamProvider)
	v.Set(ParamAccount, ChosenAccount)
	return Query(v.Encode())
}

// AskingAgain returns the request with prompt=consent.
func (q Query) AskingAgain() Query {
	v := q.Values()
	v.Set("prompt", "consent")
	return Query(v.Encode())
}

// AtProvider returns the request of a user who signs in at a provider, or chooses one.
func (q Query) AtProvider(id string) Query {
	v := q.Values()
	v.Set(ParamProvider, id)
	return Query(v.Encode())
}

// AsAnotherPerson returns the request for another user. The provider has its own session and would
// return the same user if it were not told to ask.
func (q Query) AsAnotherPerson() Query {
	v := q.Values()
	v.Set(ParamProvider, AnyProvider)
	if prompts := q.Prompts(); !slices.Contains(prompts, "select_account") {
		v.Set("prompt", strings.Join(append(prompts, "select_account"), " "))
	}
	return Query(v.Encode())
}
