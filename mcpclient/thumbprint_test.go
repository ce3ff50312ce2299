package mcpclient_test

import "github.com/mcp-authd/mcp-authd/internal/dpop"

// thumbprint is that of the key of a proof, which is not checked here.
func thumbprint(proof string) string {
	p, err := dpop.Parse(proof)
	if err != nil {
		return ""
	}
	return p.Thumbprint()
}
