package main

import (
	"errors"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/installation"
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
			address, path := a.Config.Management.Listen, "/readyz"
			if address == "" {
				if address = a.Config.Listen; a.Config.TLS.Cert != "" ||
					len(a.Config.TLS.ACME.Domains) > 0 {
					return errors.New("set management.listen: the public listener speaks TLS for another name")
				}
				if issuer, err := url.Parse(a.Config.Issuer); err == nil { // validated
					path = issuer.Path + path
				}
			}
			err = installation.CheckReady(c.Context(), address, path)
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
