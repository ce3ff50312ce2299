package provider

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/claim"
)

const (
	consumersTenant = "9188040d-6c67-4c5b-b112-36a304b66dad" // tenant of personal accounts
	tenantPlace     = "{tenantid}"                           // in an issuer template for all tenants
)

var guid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// entra is the preset for Microsoft Entra, which has one issuer per tenant behind one address.
var entra = &preset{
	Type: Type{
		ID: "entra", Name: "Microsoft", Needs: []string{"client_id", "client_secret", "tenant"},
		Takes: []string{"base_url"}, Refresh: "scope offline_access",
		Checks: byRefresh, FreshLogin: "prompt=login",
	},
	openID: true, baseURL: "https://login.microsoftonline.com", scopes: openIDScopes, offlineScope: true,
	clientAuth: authPost,
	issuer:     func(s *Settings) string { return s.BaseURL + "/" + s.Tenant + "/v2.0" },
	issuerIs:   entraIssuer,
	tenantOf: func(template string, claims map[string]any) string {
		tid := claim.Text(claims, "tid")
		if !guid.MatchString(tid) {
			return "" // not an issuer
		}
		return strings.ReplaceAll(template, tenantPlace, tid)
	},
	// User info is served by Microsoft Graph. It adds nothing to the ID token, refuses tokens for
	// other resources, and accepts a token until it expires.
	noUserInfo: true, noInspection: true,
	fresh: map[string]string{"prompt": "login"}, choose: promptSelect, loginHint: "login_hint",
	rules: []string{"tenants"},
	subject: func(raw map[string]any, sub string) string {
		if tid := claim.Text(raw, "tid"); tid != "" {
			return tid + "/" + sub
		}
		return ""
	},
	// The administrator of a tenant can write any address into an account. This claim confirms that
	// the tenant owns the domain of the address.
	complete: func(raw map[string]any) {
		raw["email_verified"] = claim.True(raw, "xms_edov") || claim.Text(raw, "xms_edov") == "1"
	},
}

// entraIssuer accepts the issuer of the tenant, or the template if there are several tenants.
func entraIssuer(s *Settings) func(string) error {
	return func(found string) error {
		tenant, ok := strings.CutPrefix(found, s.BaseURL+"/")
		tenant, ok2 := strings.CutSuffix(tenant, "/v2.0")
		switch {
		case !ok || !ok2:
		case s.Tenant == "common" || s.Tenant == "organizations":
			if tenant == tenantPlace {
				return nil
			}
		case s.Tenant == "consumers":
			if tenant == consumersTenant {
				return nil
			}
		case tenant == s.Tenant, !guid.MatchString(s.Tenant) && guid.MatchString(tenant): // configured by domain
			return nil
		}
		return fmt.Errorf("%w: the issuer is %q", ErrGarbage, printable(found, 200))
	}
}

// matchesTemplate reports whether an issuer matches a template.
func matchesTemplate(template, iss string) bool {
	before, after, ok := strings.Cut(template, tenantPlace)
	if !ok || len(iss) < len(before)+len(after) {
		return template == iss
	}
	return strings.HasPrefix(iss, before) && strings.HasSuffix(iss, after) &&
		guid.MatchString(iss[len(before):len(iss)-len(after)])
}
