package mcpclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// PlatformToken is a source of JWTs that assert the program's identity. Token is called for each
// access token, so single-use tokens work, and from several goroutines. If there is a String
// method, its result names the source in messages.
type PlatformToken interface {
	// Token returns a token for audience. A source that cannot choose the audience may return any
	// token. It is only sent if it was issued for the authorization server, or for Config.Audience.
	Token(ctx context.Context, audience string) (string, error)
}

// PlatformTokenFunc is a function that implements PlatformToken.
type PlatformTokenFunc func(ctx context.Context, audience string) (string, error)

// Token implements PlatformToken.
func (f PlatformTokenFunc) Token(ctx context.Context, audience string) (string, error) {
	return f(ctx, audience)
}

// named is a source with a name for messages.
type named struct {
	PlatformTokenFunc
	name string
}

// String implements fmt.Stringer.
func (n named) String() string { return n.name }

// File returns the token in a file, which is read each time: a projected service account token of
// Kubernetes, or a JWT-SVID written by spiffe-helper. The writer of the file chooses the audience.
func File(path string) PlatformToken {
	return named{func(context.Context, string) (string, error) {
		b, err := readFile(path)
		return strings.TrimSpace(string(b)), err
	}, "file " + path}
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err == nil && len(b) > maxToken {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxToken)
	}
	return b, err
}

// Env returns the token in an environment variable, such as the id_tokens of a GitLab CI job. The
// job sets the name of the variable and the audience.
func Env(name string) PlatformToken {
	return named{func(context.Context, string) (string, error) {
		value := strings.TrimSpace(os.Getenv(name))
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return value, nil
	}, "environment variable " + name}
}

// Platform returns a source by name: "github-actions", "google", "azure", "azure:CLIENT_ID", "aws",
// "file:PATH" or "env:NAME". For "" it detects the CI system or cloud from the environment.
func Platform(name string) (PlatformToken, error) {
	kind, value, _ := strings.Cut(name, ":")
	switch {
	case name == "":
		return detect()
	case kind == "file" && value != "":
		return File(value), nil
	case kind == "env" && value != "":
		return Env(value), nil
	case name == "github-actions":
		return GitHubActions(), nil
	case name == "google":
		return GoogleMetadata(), nil
	case kind == "azure":
		return AzureManagedIdentity(value), nil
	case name == "aws":
		return AWS(), nil
	}
	return nil, fmt.Errorf("mcpclient: unknown platform %q; known are github-actions, google, azure, aws, "+
		"file:PATH and env:NAME", name)
}

// detection is an environment variable that identifies a platform.
type detection struct {
	variable string
	source   func() PlatformToken
}

func detectable() []detection {
	return []detection{
		{githubURL, GitHubActions},
		{"IDENTITY_ENDPOINT", func() PlatformToken { return AzureManagedIdentity("") }},
		{"K_SERVICE", GoogleMetadata}, // Cloud Run
		{"GCE_METADATA_HOST", GoogleMetadata},
		{"AWS_CONTAINER_CREDENTIALS_FULL_URI", AWS},
		{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AWS},
		{"AWS_LAMBDA_FUNCTION_NAME", AWS},
	}
}

func detect() (PlatformToken, error) {
	for _, d := range detectable() {
		if os.Getenv(d.variable) != "" {
			return d.source(), nil
		}
	}
	return nil, errors.New("mcpclient: the environment does not say which platform this is; name one of " +
		"github-actions, google, azure, aws, file:PATH and env:NAME")
}

// claims are the claims that are checked before a platform token is sent. The authorization server
// verifies the token.
type claims struct {
	Issuer   string      `json:"iss"`
	Subject  string      `json:"sub"`
	Audience audience    `json:"aud"`
	Expires  json.Number `json:"exp"`
}

// audience is a string or an array of strings (RFC 7519 §4.1.3).
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// assertion gets a token from the platform, and checks that it may be sent.
func (w *Client) assertion(ctx context.Context) (string, error) {
	want := w.c.Audience
	if want == "" {
		want = w.found.issuer
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	text, err := w.c.Token.Token(ctx, want)
	if err != nil {
		e := of(stepPlatform, err)
		e.Step, e.temporary = stepPlatform, true
		return "", e
	}
	c, err := readClaims(text)
	if err == nil {
		err = w.maySend(c)
	}
	if err != nil {
		return "", err
	}
	w.trace(stepPlatform, fmt.Sprintf("%s says: %s of %s, for %s", nameOf(w.c.Token), printable(c.Subject),
		printable(c.Issuer), printable(strings.Join(c.Audience, ", "))),
		map[string]any{"issuer": c.Issuer, "subject": c.Subject, "audience": []string(c.Audience)})
	return text, nil
}

func nameOf(p PlatformToken) string {
	if s, ok := p.(fmt.Stringer); ok {
		return s.String()
	}
	return "the platform"
}

func readClaims(text string) (c claims, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || !isCredential(text) {
		return c, fail(stepPlatform, "It must be a JWT.", "the platform's token is not a JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	if err != nil {
		return c, fail(stepPlatform, "It must be a JWT.", "the claims of the platform's token cannot be read")
	}
	return c, nil
}

// maySend returns an error if the token was issued for another server: the receiver could use it
// there to impersonate the program.
func (w *Client) maySend(c claims) error {
	const advice = "Have the platform make it for %s; or, if it cannot, set Config.Audience and " +
		"Config.AuthorizationServer."
	for _, a := range c.Audience {
		if !w.isMine(a) && (w.c.AuthorizationServer == "" || a != w.c.Audience) {
			return fail(stepPlatform, fmt.Sprintf(advice, w.found.issuer),
				"the platform's token is for %s, and not for %s: it was not sent", printable(a), w.found.issuer)
		}
	}
	if len(c.Audience) == 0 {
		return fail(stepPlatform, fmt.Sprintf(advice, w.found.issuer), "the platform's token is for no audience")
	}
	if end, err := c.Expires.Int64(); err == nil && w.now().After(time.Unix(end, 0)) {
		e := fail(stepPlatform, "The platform has to renew it.", "the platform's token has expired: it was not sent")
		e.temporary = true
		return e
	}
	return nil
}

// isMine reports whether an audience is the authorization server: its token endpoint, or its issuer
// with or without a final slash.
func (w *Client) isMine(a string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(w.found.issuer, "/") || a == w.found.endpoint
}
