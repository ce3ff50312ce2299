package peers

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// protocol is the version of the protocol between replicas (ALPN, RFC 7301).
const protocol = "mcp-authd-peers/1"

var (
	// errKey means that the other side of a handshake has a different master key or none.
	errKey = errors.New("it has another master key, or is not mcp-authd")
	// errReplaced means that another replica answered at the dialed replica's address.
	errReplaced = errors.New("another replica is at its address")
)

// identity proves to other replicas that a replica has the master key, and which replica it is.
type identity struct {
	certificate tls.Certificate
	authorities []ed25519.PublicKey // one per master key, so that keys can be rotated
}

func newIdentity(ring *secrets.Ring, id string) (*identity, error) {
	const purpose, size = "certificates of replicas", ed25519.SeedSize
	authority := ed25519.NewKeyFromSeed(ring.Key(purpose, size))
	own := ed25519.NewKeyFromSeed(secrets.Bytes(size))
	// The validity period is not checked: clocks may differ, and the key ends with the process.
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: id},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	issuer := &x509.Certificate{Subject: pkix.Name{CommonName: "mcp-authd replicas"}}
	der, err := x509.CreateCertificate(nil, leaf, issuer, own.Public(), authority)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	i := &identity{certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}}
	for _, seed := range ring.Keys(purpose, size) {
		i.authorities = append(i.authorities, ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	}
	return i, nil
}

// verify checks that the other side of a connection belongs to this installation. If id is not "",
// it also checks that it is that replica. The handshake has proved possession of the certificate's
// key.
func (i *identity) verify(cs tls.ConnectionState, id string) error {
	if len(cs.PeerCertificates) != 1 || cs.NegotiatedProtocol != protocol {
		return errKey
	}
	c := cs.PeerCertificates[0]
	signed := false
	for _, authority := range i.authorities {
		signed = signed || ed25519.Verify(authority, c.RawTBSCertificate, c.Signature)
	}
	switch {
	case !signed || c.SignatureAlgorithm != x509.PureEd25519:
		return errKey
	case id != "" && c.Subject.CommonName != id:
		return errReplaced
	}
	return nil
}

func (i *identity) config(id string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.certificate},
		NextProtos: []string{protocol}, SessionTicketsDisabled: true,
		ClientAuth:         tls.RequireAnyClientCert, // for the server; verify checks the certificate
		InsecureSkipVerify: true,                     // for the client; verify replaces the check of names and times
		VerifyConnection:   func(cs tls.ConnectionState) error { return i.verify(cs, id) },
	}
}

func (i *identity) server() *tls.Config { return i.config("") }

// client returns the TLS configuration for dialing the replica id.
func (i *identity) client(id string) *tls.Config { return i.config(id) }
