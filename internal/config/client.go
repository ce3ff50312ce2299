package config

// Client is a client of the operator.
type Client struct {
	ID           string   `yaml:"id"`
	Name         string   `yaml:"name"`
	Secret       Secret   `yaml:"secret"`
	JWKS         string   `yaml:"jwks"`     // public keys for private_key_jwt, as JSON
	JWKSURI      string   `yaml:"jwks_uri"` // or where they are published
	RedirectURIs []string `yaml:"redirect_uris"`
	GrantTypes   []string `yaml:"grant_types"`
	AuthMethod   string   `yaml:"auth_method"`
	Scopes       []string `yaml:"scopes"`
	Resources    []string `yaml:"resources"`
	RequirePAR   bool     `yaml:"require_par"` // its authorization requests have to be pushed
	DPoP         string   `yaml:"dpop"`        // optional, or required: all of its tokens are bound to a key
}
