package assembly

import (
	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// The authorization server and the delegation depend on each other only through these interfaces.
var (
	_ authserver.Delegation = (*thirdparty.Delegation)(nil)
	_ authserver.Bindings   = (*thirdparty.Delegation)(nil)
	_ authserver.Accounts   = (*thirdparty.Delegation)(nil)
	_ authserver.Broker     = (*thirdparty.Delegation)(nil)
)
