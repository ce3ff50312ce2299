package form

import (
	"net/url"
	"slices"
	"strings"
)

// ParamProvider is a parameter of ours at /authorize: the id of the provider to sign in
// at, or AnyProvider for the page on which people choose.
const (
	ParamProvider = "provider"
	AnyProvider   = "*"
)

// ParamAccount is a parameter of ours at /authorize: with AnotherAccount the person signs in, also when
// another person is signed in; with ChosenAccount they have just said as whom they answer.
const (
	ParamAccount   = "account"
	AnotherAccount = "another"
	ChosenAccount  = "chosen"
)

// ParamClearance is a parameter of ours at /authorize: with ToldClearance the person has seen for whom the
// call waits that the request names.
const (
	ParamClearance = "clearance"
	ToldClearance  = "told"
)

// ParamResume is the parameter of ours at /authorize with a request that was pushed, sealed.
const ParamResume = "resume"

// Query is an authorization request as URLs and forms carry it: encoded.
type Query string

// Values returns the parameters. A query that is no query has those before its fault.
func (q Query) Values() url.Values {
	v, _ := url.ParseQuery(string(q))
	return v
}

// Prompts returns the values of the parameter prompt (OpenID Connect Core §3.1.2.1).
func (q Query) Prompts() []string { return strings.Fields(q.Values().Get("prompt")) }

// SignedIn is the request to come back to after signing in: what demanded the sign-in
// is fulfilled by it.
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

// Chosen is the request of a person who has chosen an account that is signed in.
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

// Told is the request of a person who has seen for whom the call waits that it names.
func (q Query) Told() Query {
	v := q.Values()
	v.Set(ParamClearance, ToldClearance)
	return Query(v.Encode())
}

// Choosing is the request with a demand for the page on which people choose an account.
func (q Query) Choosing() Query {
	v, prompts := q.Values(), slices.DeleteFunc(q.Prompts(), func(p string) bool { return p == "none" })
	if !slices.Contains(prompts, "select_account") {
		prompts = append(prompts, "select_account")
	}
	v.Set("prompt", strings.Join(prompts, " "))
	return Query(v.Encode())
}

// AnotherAccount is the request of a person who signs in with an account that the browser does not
// hold yet.
func (q Query) AnotherAccount() Query {
	v := q.Choosing().Values()
	v.Set(ParamAccount, AnotherAccount)
	return Query(v.Encode())
}

// Consented is the request as the consent page carries it: what demanded the page is
// fulfilled by it.
func (q Query) Consented() Query {
	v := q.Values()
	v.Del("prompt")
	v.Del("login_hint")
	v.Del(ParamProvider)
	v.Set(ParamAccount, ChosenAccount)
	return Query(v.Encode())
}

// AskingAgain is the request with a demand for the consent page.
func (q Query) AskingAgain() Query {
	v := q.Values()
	v.Set("prompt", "consent")
	return Query(v.Encode())
}

// AtProvider is the request for a person who signs in at a provider, or chooses one.
func (q Query) AtProvider(id string) Query {
	v := q.Values()
	v.Set(ParamProvider, id)
	return Query(v.Encode())
}

// AsAnotherPerson is the request for another person. A provider has a session
// of its own and would send the same one back, if it were not told to ask.
func (q Query) AsAnotherPerson() Query {
	v := q.Values()
	v.Set(ParamProvider, AnyProvider)
	if prompts := q.Prompts(); !slices.Contains(prompts, "select_account") {
		v.Set("prompt", strings.Join(append(prompts, "select_account"), " "))
	}
	return Query(v.Encode())
}
