package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// platformTime is the timeout for a platform's answer.
const platformTime = 10 * time.Second

// outside returns a client for platforms at public addresses. within returns one for the metadata
// services of clouds, without a proxy.
func outside() *http.Client {
	return &http.Client{Timeout: platformTime, CheckRedirect: discovery.NoRedirect}
}

func within() *http.Client {
	c := outside()
	c.Transport = &http.Transport{ResponseHeaderTimeout: platformTime, DisableKeepAlives: true}
	return c
}

// get reads a document from a platform. Errors do not include the body of a refusal, which may
// contain anything.
func get(ctx context.Context, c *http.Client, location string, header map[string]string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	status, answer, body, err := exchange(c, r)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s answered %d", r.URL.Host, status)
	}
	return answer, body, err
}

const (
	githubURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	githubToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN" // #nosec G101 -- a name
)

// GitHubActions gets the token of a job from GitHub. The job needs "permissions: id-token: write".
func GitHubActions() PlatformToken {
	return named{func(ctx context.Context, audience string) (string, error) {
		location, err := url.Parse(os.Getenv(githubURL))
		if err != nil || location.Host == "" || os.Getenv(githubToken) == "" {
			return "", errors.New("GitHub gives this job no token: it needs permissions: id-token: write")
		}
		if err := discovery.CheckURL(location.String()); err != nil {
			return "", err
		}
		q := location.Query()
		q.Set("audience", audience)
		location.RawQuery = q.Encode()
		_, body, err := get(ctx, outside(), location.String(), map[string]string{
			"Authorization": "Bearer " + os.Getenv(githubToken), "Accept": "application/json",
		})
		if err != nil {
			return "", err
		}
		var answer struct{ Value string }
		err = json.Unmarshal(body, &answer)
		return answer.Value, err
	}, "GitHub Actions"}
}

// GoogleMetadata gets a token from the metadata server of Google Cloud, for the service account of
// the instance, pod or service.
func GoogleMetadata() PlatformToken {
	const flavor = "Metadata-Flavor"
	return named{func(ctx context.Context, audience string) (string, error) {
		host := cmp.Or(os.Getenv("GCE_METADATA_HOST"), "metadata.google.internal")
		location := "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/identity?" +
			url.Values{"audience": {audience}, "format": {"full"}}.Encode()
		header, body, err := get(ctx, within(), location, map[string]string{flavor: "Google"})
		if err == nil && header.Get(flavor) != "Google" {
			err = fmt.Errorf("%s is not the metadata server of Google Cloud", host)
		}
		return strings.TrimSpace(string(body)), err
	}, "Google Cloud"}
}

// AzureManagedIdentity gets the token of a managed identity, in a virtual machine or App Service.
// clientID selects a user-assigned identity; "" selects the only one or the system-assigned one.
// Entra issues tokens only for registered applications. So Config.Audience must be the
// application's ID URI, and Config.AuthorizationServer is required.
func AzureManagedIdentity(clientID string) PlatformToken {
	return named{func(ctx context.Context, audience string) (string, error) {
		base := cmp.Or(os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST"), "http://169.254.169.254")
		location, version := strings.TrimSuffix(base, "/")+"/metadata/identity/oauth2/token", "2018-02-01"
		header := map[string]string{"Metadata": "true"}
		if service := os.Getenv("IDENTITY_ENDPOINT"); service != "" {
			location, version = service, "2019-08-01"
			header = map[string]string{"X-IDENTITY-HEADER": os.Getenv("IDENTITY_HEADER")}
		}
		q := url.Values{"api-version": {version}, "resource": {audience}}
		if clientID != "" {
			q.Set("client_id", clientID)
		}
		_, body, err := get(ctx, within(), location+"?"+q.Encode(), header)
		if err != nil {
			return "", err
		}
		var answer struct {
			Token string `json:"access_token"`
		}
		err = json.Unmarshal(body, &answer)
		return answer.Token, err
	}, "Azure"}
}
