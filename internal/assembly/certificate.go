package assembly

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/acme"
)

// certificate serves the certificate in the files, and notices renewals without a restart.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu     sync.Mutex // guards the following fields
	pair   *tls.Certificate
	stamp  [2]fileStamp // of the files last read
	unfit  bool         // these files were unusable, and pair is older
	looked time.Time
	warned time.Time // that it expires
}

type fileStamp struct {
	at   time.Time
	size int64
}

// lookEvery is the minimum interval between checks of the files.
const lookEvery = 10 * time.Second

// warnOfEnd is the interval of warnings that the certificate expires soon.
const warnOfEnd = 12 * time.Hour

// Certificate reads the configured certificate (DL-01). It returns the function for a tls.Config,
// or nil for http. Until ctx ends, it measures how long the certificate is still valid.
func (p Parts) Certificate(ctx context.Context) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	c, err := p.certificate()
	if c == nil || err != nil {
		return nil, err
	}
	issuer, err := url.Parse(p.Config.Issuer)
	if err != nil {
		return nil, err
	}
	go every(ctx, func() {
		leaf := c.at(c.now()).Leaf
		p.Metrics.Certificate(issuer.Hostname(), leaf.NotBefore, leaf.NotAfter, c.now())
	})
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.at(c.now()), nil }, nil
}

func (p Parts) certificate() (*certificate, error) {
	t := p.Config.TLS
	if t.Cert == "" {
		return nil, nil
	}
	c := &certificate{certFile: t.Cert, keyFile: t.Key, log: p.Log, now: time.Now}
	c.looked = c.now()
	c.stamp = c.stamps()
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: the certificate %s and the key %s cannot be used: %w; name a pair in PEM that "+
			"belongs together in tls.cert and tls.key", t.Cert, t.Key, err)
	}
	c.pair = &pair
	return c, nil
}

// at returns the certificate, read again if its files have changed. It ignores half a renewal,
// where only one file has changed: the previous certificate stays until both files match.
func (c *certificate) at(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < lookEvery {
		return c.pair
	}
	c.looked = now
	c.read()
	leaf := c.pair.Leaf
	if acme.Ends(leaf.NotBefore, leaf.NotAfter, now) && now.Sub(c.warned) >= warnOfEnd {
		c.warned = now
		c.log.Warn("the TLS certificate ends soon: renew it; its files are read again when they change", "file",
			c.certFile, "valid_until", leaf.NotAfter)
	}
	return c.pair
}

// read reads files that have changed. It also retries unusable files, because a change of
// permissions affects neither time nor size.
func (c *certificate) read() {
	stamp := c.stamps()
	if stamp == c.stamp && !c.unfit {
		return
	}
	again := stamp == c.stamp
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if c.unfit = err != nil; c.unfit {
		if !again {
			c.log.Warn("the changed TLS files cannot be used; the previous certificate is served", "reason",
				err.Error())
		}
		return
	}
	c.pair = &pair
	c.log.Info("the TLS certificate was read again", "valid_until", pair.Leaf.NotAfter)
}

func (c *certificate) stamps() (out [2]fileStamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			out[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return out
}
