// Command dex runs Dex for the tests, assembled like its own `dex serve`: users with passwords, one
// client, memory storage, loopback. It reads the configuration of `dex serve` as JSON from standard
// input, because the tests know it only at run time. The process ends when standard input does.
//
// POST /revoke?user=ID on the second address revokes the user's refresh tokens for the client,
// through Dex's administration API.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/dexidp/dex/api/v2"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/protobuf/encoding/protowire"
)

// config is the configuration from a test.
type config struct {
	Issuer       string   `json:"issuer"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	RedirectURIs []string `json:"redirect_uris"`
	Users        []user   `json:"users"`
	// TokenTTL is the lifetime of ID tokens and access tokens in seconds.
	TokenTTL int `json:"token_ttl"`
}

// user is a user who can sign in with an email address and a password.
type user struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	Password string `json:"password"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dex:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var c config
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&c); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := c.store(logger)
	if err != nil {
		return err
	}
	dex, err := c.server(context.Background(), store, logger)
	if err != nil {
		return err
	}
	fault := make(chan error, 3)
	public, err := serve(dex, fault)
	if err != nil {
		return err
	}
	admin, err := serve(c.admin(server.NewAPI(store, logger, "test")), fault)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(map[string]string{"address": public, "admin": admin}); err != nil {
		return err
	}
	go func() {
		_, err := io.Copy(io.Discard, in)
		fault <- err // nil: the test has ended
	}()
	return <-fault
}

func serve(h http.Handler, fault chan<- error) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { fault <- s.Serve(l) }()
	return l.Addr().String(), nil
}

// store returns a store with one client, its users, and the connector for their passwords.
func (c config) store(logger *slog.Logger) (storage.Storage, error) {
	var passwords []storage.Password
	for _, u := range c.Users {
		hash, err := bcrypt.GenerateFromPassword([]byte(u.Password), bcrypt.DefaultCost) // Dex refuses a lower cost
		if err != nil {
			return nil, err
		}
		passwords = append(passwords, storage.Password{Email: u.Email, Hash: hash, Username: u.Name, UserID: u.ID})
	}
	s := memory.New(logger)
	s = storage.WithStaticClients(s, []storage.Client{{ID: c.ClientID, Secret: c.ClientSecret, Name: "mcp-authd", RedirectURIs: c.RedirectURIs}})
	s = storage.WithStaticPasswords(s, passwords, logger)
	return storage.WithStaticConnectors(s, []storage.Connector{{ID: server.LocalConnector, Type: server.LocalConnector, Name: "Password"}}), nil
}

func (c config) server(ctx context.Context, store storage.Storage, logger *slog.Logger) (*server.Server, error) {
	// Refresh tokens rotate by default. A used one is refused immediately, without Dex's default
	// grace of some seconds.
	policy, err := server.NewRefreshTokenPolicy(logger, false, "", "", "")
	if err != nil {
		return nil, err
	}
	return server.NewServer(ctx, server.Config{
		Issuer: c.Issuer, Storage: store, SkipApprovalScreen: true, RefreshTokenPolicy: policy,
		IDTokensValidFor: time.Duration(c.TokenTTL) * time.Second, HealthChecker: gosundheit.New(), Logger: logger,
	})
}

func (c config) admin(dex api.DexServer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		answer, err := dex.RevokeRefresh(r.Context(), &api.RevokeRefreshReq{UserId: subject(r.FormValue("user")), ClientId: c.ClientID})
		if err == nil && answer.NotFound {
			err = errors.New("the person has no refresh token")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	})
	return mux
}

// subject returns the identifier that Dex makes of a user's id and the connector. It is the sub of
// its tokens, and identifies users in its administration API.
func subject(user string) string {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, user)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendString(b, server.LocalConnector)
	return base64.RawURLEncoding.EncodeToString(b)
}
