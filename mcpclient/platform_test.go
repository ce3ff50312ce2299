package mcpclient

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const auth = "https://auth.example.com"

// platform starts a platform's server with the handler h.
func platform(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func had(t *testing.T, p PlatformToken, want string) {
	t.Helper()
	if got, err := p.Token(t.Context(), auth); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func failed(t *testing.T, p PlatformToken, why string) {
	t.Helper()
	if got, err := p.Token(t.Context(), auth); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("got %q, %v, want %s", got, err, why)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	failed(t, File(path), "no such file")
	for _, text := range []string{"one", "two\n"} { // it is read each time
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		had(t, File(path), strings.TrimSpace(text))
	}
	failed(t, File(filepath.Dir(path)), "not a regular file")
	if err := os.WriteFile(path, make([]byte, maxToken+1), 0o600); err != nil {
		t.Fatal(err)
	}
	failed(t, File(path), "larger than")
}

func TestEnv(t *testing.T) {
	failed(t, Env("MCP_TEST_TOKEN"), "MCP_TEST_TOKEN is not set")
	t.Setenv("MCP_TEST_TOKEN", " a\n")
	had(t, Env("MCP_TEST_TOKEN"), "a")
}

func TestGitHubActions(t *testing.T) {
	t.Setenv(githubURL, "")
	failed(t, GitHubActions(), "id-token: write")
	base := platform(t, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("audience") != auth || q.Get("api-version") != "2.0" ||
			r.Header.Get("Authorization") != "Bearer runner" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "SECRET")
			return
		}
		fmt.Fprint(w, `{"count":1,"value":"job-token"}`)
	})
	t.Setenv(githubURL, base+"/token?api-version=2.0")
	t.Setenv(githubToken, "runner")
	had(t, GitHubActions(), "job-token")
	t.Setenv(githubToken, "wrong")
	failed(t, GitHubActions(), "answered 401")
	if _, err := GitHubActions().Token(t.Context(), auth); strings.Contains(err.Error(), "SECRET") {
		t.Error("the answer is shown")
	}
	t.Setenv(githubURL, "http://other.example/token")
	failed(t, GitHubActions(), "neither https")
}

func TestGoogleMetadata(t *testing.T) {
	flavor := "Google"
	base := platform(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", flavor)
		if r.Header.Get("Metadata-Flavor") == "Google" && r.URL.Query().Get("audience") == auth &&
			r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/identity" {
			fmt.Fprint(w, "google-token")
		}
	})
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(base, "http://"))
	had(t, GoogleMetadata(), "google-token")
	flavor = ""
	failed(t, GoogleMetadata(), "not the metadata server")
}

func TestAzureManagedIdentity(t *testing.T) {
	base := platform(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		machine := r.URL.Path == "/metadata/identity/oauth2/token" && r.Header.Get("Metadata") == "true" &&
			q.Get("api-version") == "2018-02-01"
		service := r.URL.Path == "/msi/token" && r.Header.Get("X-IDENTITY-HEADER") == "h" &&
			q.Get("api-version") == "2019-08-01"
		if q.Get("resource") == auth && (machine || service) {
			fmt.Fprintf(w, `{"access_token":"azure-token%s","expires_on":"1"}`, q.Get("client_id"))
		}
	})
	t.Setenv("IDENTITY_ENDPOINT", "")
	t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", base)
	had(t, AzureManagedIdentity(""), "azure-token")
	had(t, AzureManagedIdentity("-own"), "azure-token-own")
	t.Setenv("IDENTITY_ENDPOINT", base+"/msi/token")
	t.Setenv("IDENTITY_HEADER", "h")
	had(t, AzureManagedIdentity(""), "azure-token")
}

// TestSignature checks the example of an IAM request in the documentation of AWS Signature Version
// 4.
func TestSignature(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), "GET",
		"https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	keys := awsKeys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	keys.sign(r, "", "us-east-1", "iam", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, " +
		"SignedHeaders=content-type;host;x-amz-date, " +
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := r.Header.Get("Authorization"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAWS(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	} {
		t.Setenv(name, "")
	}
	failed(t, AWS(), "AWS_REGION")
	t.Setenv("AWS_REGION", "eu-west-1")
	role := `{"AccessKeyId":"AKIA","SecretAccessKey":"s","Token":"session"}`
	base := platform(t, func(w http.ResponseWriter, r *http.Request) {
		session := r.Header.Get("X-Aws-Ec2-Metadata-Token") == "imds"
		switch {
		case r.Method == "POST" && r.FormValue("Action") == "GetWebIdentityToken" &&
			r.FormValue("Audience.member.1") == auth &&
			strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIA/"):
			fmt.Fprint(w, `<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
				<GetWebIdentityTokenResult><WebIdentityToken>aws-token</WebIdentityToken></GetWebIdentityTokenResult>
				</GetWebIdentityTokenResponse>`)
		case r.URL.Path == "/pod" && r.Header.Get("Authorization") == "pod":
			fmt.Fprint(w, role)
		case r.Method == "PUT" && r.URL.Path == "/latest/api/token":
			fmt.Fprint(w, "imds")
		case session && r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "my-role\n")
		case session && r.URL.Path == "/latest/meta-data/iam/security-credentials/my-role":
			fmt.Fprint(w, role)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	t.Setenv("AWS_ENDPOINT_URL_STS", base)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", base)
	t.Run("with the credentials of the instance", func(t *testing.T) { had(t, AWS(), "aws-token") })
	t.Run("of the container", func(t *testing.T) {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", base+"/pod")
		failed(t, AWS(), "answered 403")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod")
		had(t, AWS(), "aws-token")
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://other.example/pod")
		failed(t, AWS(), "neither https nor the agent")
	})
	t.Run("in the environment", func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
		had(t, AWS(), "aws-token")
		t.Setenv("AWS_ACCESS_KEY_ID", "OTHER")
		failed(t, AWS(), "sts:GetWebIdentityToken")
	})
}

func TestPlatformByName(t *testing.T) {
	for name, want := range map[string]string{
		"github-actions": "GitHub Actions", "google": "Google Cloud", "azure": "Azure", "azure:abc": "Azure",
		"aws": "AWS", "file:/run/token": "file /run/token", "env:X": "environment variable X",
		"file:": "", "env": "", "k8s": "", "google:x": "",
	} {
		p, err := Platform(name)
		if want == "" && err == nil || want != "" && (err != nil || nameOf(p) != want) {
			t.Errorf("%s: got %v, %v, want %q", name, p, err, want)
		}
	}
	for _, d := range detectable() {
		t.Setenv(d.variable, "")
	}
	if _, err := Platform(""); err == nil || !strings.Contains(err.Error(), "name one of") {
		t.Errorf("got %v", err)
	}
	t.Setenv(githubURL, "https://x")
	if p, err := Platform(""); err != nil || nameOf(p) != "GitHub Actions" {
		t.Errorf("got %v, %v", p, err)
	}
}
