package mcpclient_test

import "github.com/mcp-authd/mcp-authd/internal/dpop"

// thumbprint returns the thumbprint of the key of a proof, without verifying the proof.
func thumbprint(proof string) string {
	p, err := dpop.Parse(proof)
	if err != nil {
		return ""
	}
	return p.Thumbprint()
}
