package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/bench/internal/client"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// installation is a directory with a configuration and the database that its program creates.
type installation struct {
	program, config, issuer, password string
}

// person returns the name of an account.
func person(i int) string { return fmt.Sprint("person", i) }

func newInstallation(program, parent string) (*installation, error) {
	dir, err := os.MkdirTemp(parent, "installation")
	if err != nil {
		return nil, err
	}
	public, err := freeAddress()
	if err != nil {
		return nil, err
	}
	management, err := freeAddress()
	if err != nil {
		return nil, err
	}
	in := &installation{
		program: program, config: filepath.Join(dir, "config.yaml"), issuer: "http://" + public,
		password: secrets.Token(""),
	}
	return in, os.WriteFile(in.config, fmt.Appendf(nil, `issuer: %[1]s
listen: %[2]s
management: {listen: %[3]s}
data_dir: %[4]s
resources: [{uri: "%[1]s/mcp", scopes: [{name: mcp}]}]
`, in.issuer, public, management, dir), 0o600)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// addPeople creates an account for each browser that will sign in, because attempts on one account
// wait for each other. The program runs meanwhile, as in an installation.
func (in *installation) addPeople(ctx context.Context, people int) error {
	s, err := in.start(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	for i := range people {
		c := exec.CommandContext(ctx, in.program, "user", "add", person(i), "--password-stdin", "--config", in.config)
		c.Stdin = strings.NewReader(in.password + "\n")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("user add: %w: %s", err, out)
		}
	}
	return s.stop()
}

// signIn signs all users in concurrently, each with its own browser, and returns the duration.
func (in *installation) signIn(people int) (time.Duration, error) {
	c, err := client.New(client.Config{Issuer: in.issuer, Connections: people})
	if err != nil {
		return 0, err
	}
	errs := make([]error, people)
	began := time.Now()
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			p, err := c.NewPerson(person(i), in.password)
			if err == nil {
				_, err = p.SignIn()
			}
			errs[i] = err
		})
	}
	all.Wait()
	took := time.Since(began)
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		return took, fmt.Errorf("%d of %d sign-ins failed, the first: %w", len(failed), people, failed[0])
	}
	return took, nil
}

// server is a program that has responded.
type server struct {
	command *exec.Cmd
	output  *bytes.Buffer
	passed  time.Duration // from its exec to the first response
	used    time.Duration // processor time
}

// start starts the program, and waits up to a minute for a response.
func (in *installation) start(ctx context.Context) (*server, error) {
	s := &server{output: new(bytes.Buffer)}
	s.command = exec.Command(in.program, "serve", "--config", in.config)
	s.command.Stdout, s.command.Stderr = s.output, s.output
	began := time.Now()
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := answers(ctx, client.MetadataURL(in.issuer))
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("no answer: %w", err), s.stop())
		}
		time.Sleep(time.Millisecond)
	}
	s.passed = time.Since(began)
	var err error
	if s.used, err = processorTime(s.pid()); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func (s *server) pid() int { return s.command.Process.Pid }

// stop ends the program as an administrator does. If the program fails, it returns an error with
// all its output. Later calls do nothing.
func (s *server) stop() error {
	if s.command.ProcessState != nil {
		return nil
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := s.command.Wait(); err != nil {
		return fmt.Errorf("the program ended with %w: %s", err, s.output)
	}
	return nil
}
