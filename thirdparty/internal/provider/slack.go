package provider

import (
	"context"
	"net/http"

	"github.com/mcp-authd/mcp-authd/internal/claim"
)

// slack is the preset for Slack: OpenID Connect with errors in responses with status 200.
var slack = &preset{
	Type: Type{
		ID: "slack", Name: "Slack", Needs: secretNeeded, Refresh: "where token rotation is on", Checks: byUserInfo,
		FreshLogin: "not known",
	},
	openID: true, issuer: fixedIssuer("https://slack.com"), scopes: openIDScopes, clientAuth: authPost, slack: true,
	rules: []string{"organizations"},
	narrow: func(s *Settings, p map[string]string) {
		if len(s.Organizations) == 1 {
			p["team"] = s.Organizations[0]
		}
	},
	complete: func(raw map[string]any) {
		if team := claim.Text(raw, "https://slack.com/team_id"); team != "" {
			raw["organizations"] = []any{team}
		}
	},
	// A user ID is unique only within a workspace.
	subject: func(raw map[string]any, sub string) string {
		if team := claim.Text(raw, "https://slack.com/team_id"); team != "" {
			return team + "/" + sub
		}
		return ""
	},
	revoke: func(ctx context.Context, u *plainOAuth, t Tokens) error {
		body, _, err := u.get(ctx, "https://slack.com/api/auth.revoke", t.Access)
		if err != nil {
			return err
		}
		raw, err := object(body)
		if err != nil {
			return err
		}
		return u.slackFailure(raw)
	},
}

// slackFailure returns the error of a response with "ok": false.
func (u *plainOAuth) slackFailure(raw map[string]any) error {
	if ok, said := raw["ok"].(bool); !u.preset.slack || !said || ok {
		return nil
	}
	return refusal(http.StatusOK, claim.Text(raw, "error"), "")
}
