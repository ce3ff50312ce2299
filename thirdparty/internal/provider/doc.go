// Package provider speaks to identity providers: it makes their requests, checks their answers
// and says of each failure what it means. It stores nothing, and knows neither sessions nor
// people here; package thirdparty rests those on it.
//
//	provider.go                a Provider, what both protocols do, and the five ways in which it fails
//	settings.go                what it takes to speak to one, its defaults, and what is wrong with it
//	presets.go                 the types, and what each does in its own way; more of it in
//	                           entra.go, slack.go, discord.go, github.go, lists.go
//	oauth2.go, oidc.go         the two protocols; discovery.go, keys.go: metadata and keys
//	clientauth.go, profile.go  how requests are made, and what answers say of a person
//	transport.go               to which addresses, how large, how long
//	health.go                  one that does not answer about sessions is left alone for a while
//	examine.go                 what the doctor command sees of one
package provider
