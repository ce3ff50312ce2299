package authserver

import (
	"fmt"
	"net/http"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/authserver/internal/form"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
)

// ownHost serves pages under the host of the issuer and on loopback alone. A page of another
// host whose name was made to lead here could otherwise guess passwords in the name of the
// browser that shows it (DNS rebinding).
func (p *pages) ownHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.isOwnHost(r.Host) {
			cause := attempt.CauseHost.Because(fmt.Errorf("it was for the host %q, and the issuer is %s",
				form.Cut(r.Host, 100), p.issuer))
			p.errors.misfitBecause(w, r, http.StatusForbidden, web.Error{
				Title: web.Say("error.host_title"), Message: web.Say("error.host_message"),
				Advice: web.Say("error.host_advice", "address", p.issuer),
			}, cause)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (p *pages) isOwnHost(host string) bool {
	name := network.Hostname(host)
	return name != "" && name == p.paths.host || oauth.IsLoopbackHost(name)
}
