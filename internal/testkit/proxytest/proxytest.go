// Package proxytest serves documents at real https URLs to a server under test. The server uses an
// outbound proxy and trusts the certificate authority of the test.
package proxytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Web simulates the internet for the server: an outbound proxy that tunnels every https host to one
// test server, which has a certificate for each host.
type Web struct {
	proxyURL string
	caFile   string

	caCert *x509.Certificate
	caKey  *ecdsa.PrivateKey

	mu        sync.Mutex // guards the fields below
	documents map[string][]byte
	fetched   map[string]int
	leaves    map[string]*tls.Certificate
}

// Start returns an empty Web that ends with the test.
func Start(tb testing.TB) *Web {
	tb.Helper()
	w := &Web{documents: map[string][]byte{}, fetched: map[string]int{}, leaves: map[string]*tls.Certificate{}}
	w.newAuthority(tb)
	origin := httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	origin.TLS = &tls.Config{GetCertificate: w.leaf}
	origin.StartTLS()
	tb.Cleanup(origin.Close)
	proxy := httptest.NewServer(tunnel(origin.Listener.Addr().String()))
	tb.Cleanup(proxy.Close)
	w.proxyURL = proxy.URL
	return w
}

// Env returns the environment for a server that fetches documents from here.
func (w *Web) Env() []string {
	return []string{"MCP_AUTHD_REGISTRATION_DOCUMENTS_PROXY=" + w.proxyURL, "SSL_CERT_FILE=" + w.caFile}
}

// Publish publishes a JSON document at an https URL.
func (w *Web) Publish(url string, document []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.documents[url] = document
}

// Fetches returns how often a URL was fetched.
func (w *Web) Fetches(url string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fetched[url]
}

func (w *Web) serve(rw http.ResponseWriter, r *http.Request) {
	url := "https://" + r.Host + r.URL.RequestURI()
	w.mu.Lock()
	document, ok := w.documents[url]
	w.fetched[url]++
	w.mu.Unlock()
	if !ok {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Write(document)
}

// tunnel answers CONNECT to any host with a connection to target.
func tunnel(target string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(rw, "CONNECT only", http.StatusMethodNotAllowed)
			return
		}
		up, err := net.Dial("tcp", target)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, buffered, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer down.Close()
		io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() {
			io.Copy(up, buffered)
			up.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(down, up)
	}
}

func (w *Web) newAuthority(tb testing.TB) {
	tb.Helper()
	var err error
	if w.caKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mcp-authd test"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &w.caKey.PublicKey, w.caKey)
	if err != nil {
		tb.Fatal(err)
	}
	if w.caCert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	w.caFile = filepath.Join(tb.TempDir(), "ca.pem")
	if err := os.WriteFile(w.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600); err != nil {
		tb.Fatal(err)
	}
}

// leaf returns a certificate for the requested host.
func (w *Web) leaf(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.leaves[hello.ServerName]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(w.leaves) + 2)), DNSNames: []string{hello.ServerName},
		NotBefore: w.caCert.NotBefore, NotAfter: w.caCert.NotAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, w.caCert, &key.PublicKey, w.caKey)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	w.leaves[hello.ServerName] = c
	return c, nil
}
