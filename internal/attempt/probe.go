package attempt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/network"
)

// ProbeHeader carries the signature of a Prober.
const ProbeHeader = "Mcp-Authd-Probe"

// probeAge is how long a signature is valid, and the largest clock difference accepted.
const probeAge = time.Minute

// Prober signs this installation's own test requests and verifies them. They fail on purpose, so
// they are not recorded as attempts. The User-Agent cannot identify them, because any client can
// send it.
type Prober struct {
	key []byte
	now func() time.Time
}

// NewProber returns a prober with a key that only this installation has. A nil prober recognizes
// nothing.
func NewProber(key []byte, now func() time.Time) *Prober { return &Prober{key, now} }

// Sign marks a request that is about to be sent.
func (p *Prober) Sign(r *http.Request) {
	at := p.now().Unix()
	r.Header.Set(ProbeHeader, strconv.FormatInt(at, 10)+"."+hex.EncodeToString(p.signature(r, at)))
}

// Signed reports whether r carries a signature of this installation that is at most probeAge old.
func (p *Prober) Signed(r *http.Request) bool {
	if p == nil {
		return false
	}
	when, signature, _ := strings.Cut(r.Header.Get(ProbeHeader), ".")
	at, err := strconv.ParseInt(when, 10, 64)
	if err != nil || p.now().Sub(time.Unix(at, 0)).Abs() > probeAge {
		return false
	}
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, p.signature(r, at))
}

// signature covers the host without its port, which a proxy may drop, the request target and the
// Authorization header. A server tested by check therefore cannot reuse it for other requests.
func (p *Prober) signature(r *http.Request, at int64) []byte {
	host, target := r.Host, r.RequestURI
	if host == "" {
		host = r.URL.Host
	}
	if target == "" { // not sent yet
		target = r.URL.RequestURI()
	}
	mac := hmac.New(sha256.New, p.key)
	for _, v := range []string{r.Method, network.Hostname(host), target, r.Header.Get("Authorization")} {
		fmt.Fprintf(mac, "%d:%s", len(v), v)
	}
	fmt.Fprint(mac, at)
	return mac.Sum(nil)
}
