package thirdparty

import "time"

// Check reports what is wrong with the configuration of a connector, as New would, and
// talks to nobody. Its error wraps ErrConfig.
func Check(c Connector) error {
	_, err := newConnector(c, surroundings{issuer: "https://localhost", productName: "mcp-authd", now: time.Now})
	return err
}
