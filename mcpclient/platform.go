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

// PlatformToken gives the token by which a platform says who the program is: a JWT for an audience. It
// is asked for each access token, so that a token that works once is enough, and from several
// goroutines. The String method, if there is one, names it in messages.
type PlatformToken interface {
	// Token returns a token. A source that cannot choose the audience gives what it has; it is sent
	// only if it was made for the authorization server, or for Config.Audience.
	Token(ctx context.Context, audience string) (string, error)
}

// PlatformTokenFunc is a function as a PlatformToken.
type PlatformTokenFunc func(ctx context.Context, audience string) (string, error)

// Token implements PlatformToken.
func (f PlatformTokenFunc) Token(ctx context.Context, audience string) (string, error) {
	return f(ctx, audience)
}

// named is a source with a name.
type named struct {
	PlatformTokenFunc
	name string
}

// String implements fmt.Stringer.
func (n named) String() string { return n.name }

// File gives the token in a file, which is read each time: a projected service account token of
// Kubernetes, or a JWT-SVID that spiffe-helper writes. What makes the file chooses the audience.
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

// Env gives the token in an environment variable: the id_tokens of a job of GitLab CI, for instance,
// which name variable and audience in the job.
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
// "file:PATH" or "env:NAME". The name "" is that of the CI system or cloud that the environment shows.
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
	return nil, fmt.Errorf("mcpclient: %q is no platform; there are github-actions, google, azure, aws, "+
		"file:PATH and env:NAME", name)
}

// detection is a variable by which a platform shows.
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

// claims are what is read of a platform token before it is sent. It is not verified here: the
// authorization server does that.
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

// assertion has the platform make a token, and checks that it may be sent.
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

// maySend keeps a token from a server that it was not made for: such a server could use it elsewhere,
// as the program.
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

// isMine reports whether an audience is the authorization server: its issuer, with or without a final
// slash, or its token endpoint.
func (w *Client) isMine(a string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(w.found.issuer, "/") || a == w.found.endpoint
}
