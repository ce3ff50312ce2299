package thirdparty

// Types TEMPORARY.
func Types() []string {
	return []string{"oidc", "oauth2", "google", "github", "gitlab", "entra", "okta", "auth0", "keycloak", "slack", "discord", "apple"}
}
