//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// keeper runs the server until its standard input ends, which it does when the test
// process ends for whatever reason; then it stops the server and removes its files.
const keeper = `"$@" & pid=$!; read _; kill -INT $pid; wait $pid; rm -rf "$0"`

// launch makes a cluster in a temporary directory and starts it. Nothing of it needs
// to survive, so it never waits for the disk.
func launch() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s, err := boot(bin, dir, attr)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func boot(bin, dir string, attr *syscall.SysProcAttr) (*Server, error) {
	if c := attr.Credential; c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	alive, err := serve(dir, attr, filepath.Join(bin, "postgres"), "-D", data, "-p", port, "-k", dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", "-c", "fsync=off",
		"-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	if err != nil {
		return nil, err
	}
	s := &Server{alive: alive, url: &url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + port,
		Path: "/postgres", RawQuery: "sslmode=disable"}}
	return s, s.wait()
}

// serve starts the command under the keeper and returns the pipe to it. Nobody
// closes the pipe: the operating system does when this process is gone.
func serve(dir string, attr *syscall.SysProcAttr, command ...string) (alive io.Closer, err error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.Command("/bin/sh", append([]string{"-c", keeper, dir}, command...)...)
	c.Dir, c.SysProcAttr, c.Stdout, c.Stderr = dir, attr, log, log
	if alive, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	return alive, c.Start()
}

func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.url.String())
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// binaries finds the newest PostgreSQL of the distribution, or the one in PATH.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.SortFunc(found, func(a, b string) int { return release(b) - release(a) })
		return filepath.Dir(found[0]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("no PostgreSQL on this machine")
	}
	real, err := filepath.EvalSymlinks(path)
	return filepath.Dir(real), err
}

// release is the number in /usr/lib/postgresql/NN/bin/initdb.
func release(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// unprivileged gives up root, under which PostgreSQL refuses to run. A process group
// of its own keeps an interrupt at the terminal from killing the keeper.
func unprivileged() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
