//go:build unix

package pgtest

import (
	"bufio"
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

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/ramdisk"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// keeper runs the server until its standard input ends, which happens when the test process ends
// for any reason. It then stops the server and removes its files. Until then it reads one command
// per line, to stop or start the server, and answers each line when it is done.
const keeper = `start() { "$@" >&2 & pid=$!; }
start "$@"
while read -r word; do
	case $word in
	start) start "$@" ;;
	*) kill -s "$word" $pid; wait $pid ;;
	esac
	echo done
done
kill -INT $pid; wait $pid; rm -rf "$0"`

// throwaway disables waiting for the disk. A test cluster need not survive a power failure.
var throwaway = []string{"fsync=off", "full_page_writes=off"}

// home is the directory of a server of this process.
type home struct {
	bin, dir string
	attr     *syscall.SysProcAttr
	port     string // "" for any free port
	settings []string
}

func (h *home) data() string { return filepath.Join(h.dir, "data") }

// run runs a PostgreSQL program to its end.
func (h *home) run(program string, args ...string) error {
	c := exec.Command(filepath.Join(h.bin, program), args...)
	c.Dir, c.SysProcAttr = h.dir, h.attr
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return nil
}

// launch creates a cluster in a new directory under dir and starts it with settings. For "", dir is
// the directory for temporary files.
func launch(dir string, settings ...string) (*Server, error) { return launchAt("", dir, settings...) }

func launchAt(port, dir string, settings ...string) (*Server, error) {
	return settle(port, dir, settings, func(h *home) error {
		return h.run("initdb", "-D", h.data(), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
			"--no-sync")
	})
}

// settle creates a new directory under dir, fills it with data by calling fill, and starts a server
// there.
func settle(port, dir string, settings []string, fill func(*home) error) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "pgtest"); err != nil {
		return nil, err
	}
	s, err := boot(&home{bin, dir, attr, port, append(settings, throwaway...)}, fill)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func boot(h *home, fill func(*home) error) (*Server, error) {
	if c := h.attr.Credential; c != nil {
		if err := os.Chown(h.dir, int(c.Uid), int(c.Gid)); err != nil {
			return nil, err
		}
	}
	if err := fill(h); err != nil {
		return nil, err
	}
	port := h.port
	if port == "" {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
	}
	command := []string{
		filepath.Join(h.bin, "postgres"), "-D", h.data(), "-p", port, "-k", h.dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "max_connections=200",
	}
	for _, setting := range h.settings {
		command = append(command, "-c", setting)
	}
	keeper, err := keep(h.dir, h.attr, command...)
	if err != nil {
		return nil, err
	}
	s := &Server{
		keeper: keeper, home: h,
		url: &url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + port,
			Path: "/postgres", RawQuery: "sslmode=disable"}}
	if err := s.wait(); err != nil {
		return nil, err
	}
	return s, s.learn()
}

// pipes connect to a keeper. The process does not close them. The operating system does when the
// process ends.
type pipes struct {
	io.Writer
	answers *bufio.Reader
}

// keep starts the command under the keeper.
func keep(dir string, attr *syscall.SysProcAttr, command ...string) (*pipes, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.Command("/bin/sh", append([]string{"-c", keeper, dir}, command...)...)
	c.Dir, c.SysProcAttr, c.Stderr = dir, attr, log
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &pipes{in, bufio.NewReader(out)}, c.Start()
}

func (p *pipes) tell(word string) error {
	if _, err := fmt.Fprintln(p, word); err != nil {
		return err
	}
	_, err := p.answers.ReadString('\n')
	return err
}

func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	err := wait.Retry(wait.Bound, func() error {
		c, err := pgx.Connect(ctx, s.url.String())
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return nil
}

// binaries returns the directory of the newest PostgreSQL of the distribution, or of the one in
// PATH.
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

// release returns NN of /usr/lib/postgresql/NN/bin/initdb.
func release(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// unprivileged returns attributes for running as a user other than root, because PostgreSQL refuses
// to run as root. A separate process group keeps an interrupt at the terminal from killing the
// keeper.
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

// portOfRun is the port of the server of a run, outside the ports of package nettest. It is fixed because
// Go caches the results of tests by the environment variables that they read.
const portOfRun = "19987"

// StartForRun starts the server that all test processes of a run share. The server ends with the calling
// process, or when the returned Server is garbage collected.
func StartForRun() (*Server, error) {
	port := portOfRun
	if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err != nil {
		port = "" // another run uses it
	} else if err := l.Close(); err != nil {
		return nil, err
	}
	return launchAt(port, ramdisk.Dir(), "synchronous_commit=off", "max_connections=500")
}

func freePort() (string, error) {
	address, err := nettest.Address()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(address)
	return port, err
}
