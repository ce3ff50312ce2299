package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// trier is the caller of test starts, for programs that require a subject.
var trier = &mcpresource.Principal{Subject: "mcp-authd-check", ClientID: "mcp-authd-check"}

// discovering is the time limit for server/discover, which some programs never answer.
const discovering = 5 * time.Second

// Try implements gateway.Server. It starts the program, asks for its name, and ends it.
func (s *Server) Try(ctx context.Context) (name string, err error) {
	for _, ask := range []func(context.Context, *hub) (string, error){introduceEither, introduceLegacy} {
		var again bool
		if name, again, err = s.try(ctx, ask); !again {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault = err; errors.Is(err, gateway.ErrAway) {
		s.fault = nil // the program may still be starting
	}
	return name, err
}

// try starts the program and asks for its name. again reports that the program ended without
// answering, so another kind of question may succeed.
func (s *Server) try(
	ctx context.Context, ask func(context.Context, *hub) (string, error),
) (name string, again bool, err error) {
	p := trier
	if s.c.Shared {
		p = nil
	}
	h := &hub{server: s, key: p.Key(), person: person(p), link: newLink(&s.c, true)}
	h.link.probe.Store(true)
	if err := s.connect(p, h.link, h); err != nil {
		return "", false, err
	}
	defer h.link.close()
	name, err = ask(ctx, h)
	switch {
	case err == nil:
		return name, false, nil
	case ctx.Err() != nil:
		return "", false, fmt.Errorf("%w: the program has not answered yet", gateway.ErrAway)
	}
	select {
	case <-h.link.proc.ended:
	case <-time.After(leftover): // the program may be about to end and print the reason
	}
	return "", h.link.proc.hasEnded(), fmt.Errorf("%s: %w%s", s.c.Command[0], err, h.link.proc.lastWords())
}

// introduceEither asks for the program's name, first in the stateless revision and then in older
// ones.
func introduceEither(ctx context.Context, h *hub) (string, error) {
	brief, cancel := context.WithTimeout(ctx, discovering)
	defer cancel()
	f, err := h.exchange(brief, "server/discover", map[string]any{"_meta": meta()})
	if h.link.proc.hasEnded() {
		return "", errEnded
	}
	var found struct {
		Supported []string `json:"supportedVersions"`
	}
	if err == nil && f.Error == nil && json.Unmarshal(f.Result, &found) == nil &&
		slices.Contains(found.Supported, mcp.Rev20260728) {
		return text(at(f.Result, "_meta", mcp.MetaServer, "name")), nil
	}
	return introduceLegacy(ctx, h)
}

func introduceLegacy(ctx context.Context, h *hub) (string, error) {
	f, err := h.exchange(ctx, "initialize",
		map[string]any{"protocolVersion": legacy, "capabilities": struct{}{}, "clientInfo": gatewayInfo})
	switch {
	case err != nil:
		return "", err
	case h.link.proc.hasEnded():
		return "", errEnded
	case f.Error != nil || at(f.Result, "protocolVersion") == nil:
		return "", errHandshake
	}
	return text(at(f.Result, "serverInfo", "name")), nil
}

// lastWords returns the exit error of a program and its last output to standard error.
func (p *process) lastWords() (words string) {
	if p.hasEnded() && p.exit != nil {
		words = " (" + p.exit.Error() + ")"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tail) > 0 {
		words += "; it has said: " + strings.Join(p.tail, " / ")
	}
	return words
}

// findProgram returns an error that explains what to do if a program is not found.
func findProgram(name string) error {
	_, err := exec.LookPath(name)
	switch {
	case err == nil:
		return nil
	case strings.Contains(name, " "):
		return fmt.Errorf("the program cannot be started: %w; is the whole command in quotes? Write its words apart", err)
	}
	return fmt.Errorf("the program cannot be started: %w; install it, or give its full path", err)
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// blame records the error of a program that ended before its first answer. nil means that the
// program has answered.
func (s *Server) blame(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// retrying is the time between attempts to start a program that has failed.
const retrying = 30 * time.Second

// Check returns nil if the program can probably be started. It returns an error if the program
// ended at its last start before its first answer.
func (s *Server) Check(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := s.heldBack(""); err != nil {
		return err
	}
	if s.fault != nil {
		return s.fault
	}
	_, err := exec.LookPath(s.c.Command[0])
	return err
}

// retry starts a program that has failed again, to find out whether it now works.
func (s *Server) retry(ctx context.Context) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, greeting)
	go func() {
		defer cancel()
		_, _ = s.Try(ctx) // Check reports the result
	}()
}
