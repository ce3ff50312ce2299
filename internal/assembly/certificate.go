package assembly

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate serves the certificate that stands in the files now, so that a renewal needs no
// restart of the server.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu     sync.Mutex // guards what follows
	pair   *tls.Certificate
	stamp  [2]fileStamp // of the files that pair was read from, or that could not be used
	looked time.Time
}

type fileStamp struct {
	at   time.Time
	size int64
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = 10 * time.Second

// Certificate reads the configured certificate (DL-01), and returns what a tls.Config needs to serve it;
// nil for http.
func (p Parts) Certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	c, err := p.certificate()
	if c == nil || err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("tls: %w", err)
	}
	c.pair = &pair
	return c, nil
}

// at returns the certificate, read again if its files have changed. Half a renewal, one file
// without the other, is not served: the one before is, until both fit.
func (c *certificate) at(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) < lookEvery {
		return c.pair
	}
	c.looked = now
	stamp := c.stamps()
	if stamp == c.stamp {
		return c.pair
	}
	c.stamp = stamp
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("the changed TLS files cannot be used; the certificate from before is served", "reason", err.Error())
		return c.pair
	}
	c.pair = &pair
	c.log.Info("the TLS certificate was read again", "valid_until", pair.Leaf.NotAfter)
	return c.pair
}

func (c *certificate) stamps() (out [2]fileStamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			out[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return out
}
