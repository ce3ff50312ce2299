package authserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/clearance"
	"github.com/mcp-authd/mcp-authd/internal/wire"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearanceBody is the response to a resource server that requests a tool call approval.
type clearanceBody struct {
	ID      string `json:"id"`
	Cleared bool   `json:"cleared"`
	Refused bool   `json:"refused"`
	// URI is the page where the user decides, absent if the call is cleared or refused. Its name is
	// the same as in a token exchange.
	URI       string `json:"interaction_uri,omitempty"`
	ExpiresIn int64  `json:"expires_in"` // in seconds
}

// handleClearance serves POST /clearance. The caller is a client that the operator created for a
// resource server. It presents the token of the tool call (RS-217).
func (s *Server) handleClearance(w http.ResponseWriter, r *http.Request) {
	p, err := readForm(r)
	if err != nil {
		s.writeParseError(w, r, err)
		return
	}
	client, err := s.grants.clientAuth.Authenticate(r.Context(), credentials(r, p))
	var demand oauth.ClearanceDemand
	if err == nil {
		demand, err = clearanceDemand(p.Values)
	}
	var answer oauth.Clearance
	if err == nil {
		token, tokenType := p.Get("subject_token"), p.Get("subject_token_type")
		answer, err = s.grants.clearances.AskFor(r.Context(), client, token, tokenType, demand)
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	wire.WriteJSON(w, http.StatusOK, clearanceBody{
		ID:        answer.ID,
		Cleared:   answer.Cleared,
		Refused:   answer.Refused,
		URI:       answer.URL,
		ExpiresIn: max(0, int64(answer.Expires.Sub(s.cfg.Now())/time.Second)),
	})
}

// clearanceParams must not repeat in a request.
var clearanceParams = []string{"resource", "tool", "arguments", "by", "approvers"}

// clearanceDemand parses a request for a tool call approval.
func clearanceDemand(values map[string][]string) (oauth.ClearanceDemand, error) {
	one := func(name string) string { return strings.Join(values[name], "") }
	for _, name := range clearanceParams {
		if len(values[name]) > 1 {
			return oauth.ClearanceDemand{},
				oauth.NewError(oauth.InvalidRequest, "The parameter '"+name+"' is repeated.")
		}
	}
	d := oauth.ClearanceDemand{
		Resource:  one("resource"),
		Tool:      one("tool"),
		By:        one("by"),
		Approvers: strings.Fields(one("approvers")),
		ACR:       strings.Fields(one("acr_values")),
	}
	if text := one("arguments"); text != "" {
		d.Arguments = json.RawMessage(text)
	}
	if age := one("max_age"); age != "" {
		seconds, err := strconv.ParseUint(age, 10, 31)
		if err != nil {
			return d, oauth.NewError(oauth.InvalidRequest, "The parameter 'max_age' must be a number of seconds.")
		}
		d.MaxAge = time.Duration(seconds) * time.Second
	}
	return d, nil
}

// Clear answers a resource server in the same process that requests a tool call approval; token is
// the token of the call (RS-217). It is the in-process form of the clearance endpoint. A Cleared
// result uses the approval up.
//
// Its error is an *oauth.Error:
//   - temporarily_unavailable: the store, or the user's provider, could not be asked
//   - invalid_grant: the token is not active
//   - invalid_target: the token is for another resource
//   - invalid_request: the call cannot be shown to a user
//   - slow_down: too many calls wait
func (s *Server) Clear(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error) {
	return s.grants.clearances.Ask(ctx, token, d)
}

// newDesk returns the desk for tool call approvals.
func (s *Server) newDesk() *clearance.Desk {
	return &clearance.Desk{
		Store:   s.cfg.Store,
		Ring:    s.ring,
		Issuer:  s.cfg.Issuer,
		ACRs:    s.ways.ACRs(),
		Factors: s.ways,
		Audit:   s.cfg.Audit,
		Now:     s.cfg.Now,
	}
}
