package mcpclient

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// AWS gets a token for the program's role from the Security Token Service (GetWebIdentityToken). It
// uses the credentials of the environment, the container or the instance, and the region in
// AWS_REGION. Outbound identity federation must be enabled in the account.
func AWS() PlatformToken {
	now := time.Now
	return named{func(ctx context.Context, audience string) (string, error) {
		region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
		if region == "" || strings.ContainsAny(region, "/.:@?#") {
			return "", errors.New("AWS_REGION is not set")
		}
		keys, err := awsKeysFound(ctx)
		if err != nil {
			return "", err
		}
		form := url.Values{
			"Action": {"GetWebIdentityToken"}, "Version": {"2011-06-15"}, "Audience.member.1": {audience},
			"SigningAlgorithm": {"RS256"}, "DurationSeconds": {"300"},
		}
		endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), "https://sts."+region+".amazonaws.com/")
		if err := discovery.CheckURL(endpoint); err != nil {
			return "", err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		keys.sign(r, form.Encode(), region, "sts", now())
		status, _, body, err := exchange(outside(), r)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s answered %d: may the role call sts:GetWebIdentityToken, and is it switched on?",
				r.URL.Host, status)
		}
		if err != nil {
			return "", err
		}
		var answer struct {
			Token string `xml:"GetWebIdentityTokenResult>WebIdentityToken"`
		}
		err = xml.Unmarshal(body, &answer)
		return answer.Token, err
	}, "AWS"}
}

type awsKeys struct {
	ID     string `json:"AccessKeyId"`
	Secret string `json:"SecretAccessKey"`
	Token  string // session token; "" for long-lived keys
}

func awsKeysFound(ctx context.Context) (k awsKeys, err error) {
	k = awsKeys{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
	if k.ID != "" && k.Secret != "" {
		return k, nil
	}
	var body []byte
	full := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	relative := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
	switch {
	case strings.HasPrefix(relative, "/"):
		body, err = awsContainer(ctx, "http://169.254.170.2"+relative)
	case full != "":
		body, err = awsContainer(ctx, full)
	default:
		body, err = awsInstance(ctx)
	}
	if err != nil {
		return k, err
	}
	err = json.Unmarshal(body, &k)
	if err == nil && (k.ID == "" || k.Secret == "") {
		err = errors.New("AWS gives this program no credentials")
	}
	return k, err
}

// awsContainer requests credentials from the container's agent. The authorization token is sent to
// no other host.
func awsContainer(ctx context.Context, location string) ([]byte, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL")
	}
	agents := []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}
	if !slices.Contains(agents, u.Hostname()) && discovery.CheckURL(location) != nil {
		return nil, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor the agent of the container")
	}
	authorization := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		b, err := readFile(file)
		if err != nil {
			return nil, err
		}
		authorization = strings.TrimSpace(string(b))
	}
	header := map[string]string{}
	if authorization != "" {
		header["Authorization"] = authorization
	}
	_, body, err := get(ctx, within(), location, header)
	return body, err
}

// awsInstance requests credentials from the instance metadata service (version 2).
func awsInstance(ctx context.Context) ([]byte, error) {
	base := strings.TrimSuffix(cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/")
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, base+"/latest/api/token", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
	status, _, session, err := exchange(within(), r)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s answered %d", r.URL.Host, status)
	}
	if err != nil {
		return nil, err
	}
	header := map[string]string{"X-Aws-Ec2-Metadata-Token": string(session)}
	const place = "/latest/meta-data/iam/security-credentials/"
	_, role, err := get(ctx, within(), base+place, header)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(string(role), "\n")
	_, body, err := get(ctx, within(), base+place+url.PathEscape(strings.TrimSpace(name)), header)
	return body, err
}

// sign signs a request without a query (AWS Signature Version 4).
func (k awsKeys) sign(r *http.Request, body, region, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	if k.Token != "" {
		r.Header.Set("X-Amz-Security-Token", k.Token)
	}
	values := map[string]string{"host": r.URL.Host}
	for name := range r.Header {
		values[strings.ToLower(name)] = strings.TrimSpace(r.Header.Get(name))
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	signed := strings.Join(names, ";")
	canonical := r.Method + "\n" + cmp.Or(r.URL.EscapedPath(), "/") + "\n" + r.URL.RawQuery + "\n"
	for _, name := range names {
		canonical += name + ":" + values[name] + "\n"
	}
	canonical += "\n" + signed + "\n" + hexDigest(body)
	scope := stamp[:8] + "/" + region + "/" + service + "/aws4_request"
	key := []byte("AWS4" + k.Secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hexDigest(canonical)))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+k.ID+"/"+scope+", SignedHeaders="+signed+
		", Signature="+signature)
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
