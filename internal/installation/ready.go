package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// ErrNotReachable is returned if a server does not respond.
var ErrNotReachable = errors.New("not reachable")

func CheckReady(ctx context.Context, address, path string) error {
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
		return fmt.Errorf("%s is %w: %s; is the server running, with this configuration?", at, ErrNotReachable,
			Cause(err))
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
		return fmt.Errorf("%s answered %s %s; the log of the server says why", at, resp.Status, label.Printable(body.Status))
	}
	return nil
}

// answers reports whether a server like this one responds at an address.
func answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return CheckReady(ctx, address, "/healthz") == nil
}
