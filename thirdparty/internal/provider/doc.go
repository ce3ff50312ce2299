// Package provider sends requests to identity providers, checks their responses and classifies
// every failure. It stores nothing, and knows neither sessions nor local users; package thirdparty
// adds those.
//
//	provider.go                Provider, the code of both protocols, and the five errors
//	settings.go                the settings of a provider: defaults and validation
//	presets.go                 the types, and the peculiarities of each; also in
//	                           entra.go, slack.go, discord.go, github.go, lists.go
//	oauth2.go, oidc.go         the two protocols; discovery.go, keys.go: metadata and keys
//	clientauth.go, profile.go  client authentication, and claims from responses
//	transport.go               limits on addresses, sizes and times
//	health.go                  leaves a provider alone that does not answer about sessions
//	examine.go                 findings for the doctor command
package provider
