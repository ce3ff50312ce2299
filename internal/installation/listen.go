package installation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// Listen opens a listener. key is the setting of its address.
func Listen(ctx context.Context, address, key string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		taken := ""
		if errors.Is(err, syscall.EADDRINUSE) && answers(ctx, address) {
			taken = " (a server like this one answers there already)"
		}
		return nil, fmt.Errorf("cannot listen on %s: %s%s; %s", address, Cause(err), taken,
			insteadOf(err, address, key))
	}
	return l, nil
}

// portsAreFree returns an error if the server could not listen, before anything is created.
func (in *Installation) portsAreFree(ctx context.Context) error {
	keys := map[string]string{"listen or --listen": in.Config.Listen}
	if len(in.Config.TLS.ACME.Domains) > 0 && in.Config.TLS.ACME.HTTPListen != "" {
		keys[ACMEListen] = in.Config.TLS.ACME.HTTPListen
	}
	for key, address := range keys {
		l, err := Listen(ctx, address, key)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// insteadOf returns advice for an address that cannot be listened on.
func insteadOf(err error, address, key string) string {
	_, text, splitErr := net.SplitHostPort(address)
	port, numberErr := strconv.Atoi(text)
	low := splitErr == nil && numberErr == nil && port > 0 && port < 1024
	switch {
	case errors.Is(err, syscall.EACCES) && low:
		return "let the program have ports below 1024: AmbientCapabilities=CAP_NET_BIND_SERVICE in its systemd unit, or " +
			"setcap cap_net_bind_service=+ep on it"
	case errors.Is(err, syscall.EADDRINUSE) && key == ACMEListen:
		return "end what has the port (ss -ltnp names it), or set " + ACMEListen +
			` to "": challenges then come to port 443 alone, and nothing is sent on to https`
	case errors.Is(err, syscall.EADDRINUSE) && low:
		return "end what has the port (ss -ltnp names it), or put it in front as a TLS proxy and set another address with " +
			key
	}
	return "set another address with " + key
}

// ACMEListen is the key of the listener for challenges over http.
const ACMEListen = "tls.acme.http_listen"

// Cause returns the system's text for a network error.
func Cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}
