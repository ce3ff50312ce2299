package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func newHealthcheckCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use: "healthcheck", Short: "Check whether the running server is ready; for containers", Args: cobra.NoArgs,
		Example: "  mcp-authd healthcheck",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := where.load(s)
			if err != nil {
				return err
			}
			address, path := a.config.Management.Listen, "/readyz"
			if address == "" {
				if address = a.config.Listen; a.config.TLS.Cert != "" ||
					len(a.config.TLS.ACME.Domains) > 0 {
					return errors.New("set management.listen: the public listener speaks TLS for another name")
				}
				if issuer, err := url.Parse(a.config.Issuer); err == nil { // validated
					path = issuer.Path + path
				}
			}
			err = checkReady(c.Context(), address, path)
			if asJSON {
				return reportHealth(s, err)
			}
			return err
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// health is the output of healthcheck --json.
type health struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

func reportHealth(s std, err error) error {
	h := health{Ready: err == nil}
	if err != nil {
		h.Error = err.Error()
	}
	if err := printJSON(s.out, h); err != nil {
		return err
	}
	if !h.Ready {
		return errSilent
	}
	return nil
}

// errNotReachable is returned if a server does not respond.
var errNotReachable = errors.New("not reachable")

func checkReady(ctx context.Context, address, path string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	at := "http://" + net.JoinHostPort(host, port) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a proxy cannot reach it
	resp, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("%s is %w: %s; is the server running, with this configuration?", at, errNotReachable,
			cause(err))
	}
	defer resp.Body.Close()
	var body struct{ Status string }
	err = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&body)
	switch {
	case err != nil || body.Status == "":
		return fmt.Errorf(
			"%s answered %s, and not as mcp-authd does: another program has that address; see management.listen and listen",
			at, resp.Status,
		)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s %s; the log of the server says why", at, resp.Status, printable(body.Status))
	}
	return nil
}

// answers reports whether a server like this one responds at an address.
func answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return checkReady(ctx, address, "/healthz") == nil
}
