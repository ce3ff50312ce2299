package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens a listener; key is what sets its address.
func listen(ctx context.Context, address, key string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		taken := ""
		if errors.Is(err, syscall.EADDRINUSE) && answers(ctx, address) {
			taken = " (a server like this one answers there already)"
		}
		return nil, fmt.Errorf("cannot listen on %s: %s%s; set another address with %s", address, cause(err), taken,
			key)
	}
	return l, nil
}

// cause is the system's own words for a network error.
func cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return err.Error()
}
