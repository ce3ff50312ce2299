package stdio

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	queueSize  = 256             // messages that the program has not read
	queueBytes = 16 << 20        // total size of these messages
	grace      = 2 * time.Second // for each step of ending a program
	leftover   = time.Second     // for output from other processes after the program has ended
	maxLogLine = 2 << 10
	logRate    = 20 // lines of standard error per second
	logBurst   = 200
)

var (
	errBusy  = errors.New("the program does not read its input")
	errEnded = errors.New("the program has ended")
)

// receiver gets the output of a program, one call at a time.
type receiver interface {
	receive(line []byte)
	tooLarge() // a message was dropped
	ended(*process)
}

type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	queue  chan []byte
	queued atomic.Int64  // bytes in queue
	ended  chan struct{} // closed when the program and its group have ended
	wanted bool          // the gateway has ended it; set before ended is closed
	exit   error         // exit error, nil for success; set before ended is closed
	begun  time.Time
	log    *slog.Logger

	stopping atomic.Bool

	mu   sync.Mutex // guards tail
	tail []string   // the last lines of standard error
}

const tailLines = 5

func start(c *Config, env []string, to receiver) (*process, error) {
	cmd, err := command(c)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", c.Command[0], err)
	}
	p := &process{
		cmd: cmd, queue: make(chan []byte, queueSize),
		ended: make(chan struct{}),
		begun: c.Now(), log: c.Logger,
	}
	p.cmd.Dir, p.cmd.Env, p.cmd.WaitDelay = c.Dir, env, leftover
	isolate(p.cmd)
	c.account.become(p.cmd)
	p.cmd.Stdout = &lines{limit: c.MaxMessage, emit: to.receive, tooLong: func() {
		p.log.Warn("a message of the MCP server is too large and left out", "limit", c.MaxMessage)
		to.tooLarge()
	}}
	p.cmd.Stderr = p.errorLog()
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", c.Command[0], err)
	}
	p.log.Debug("started an MCP server", "pid", p.cmd.Process.Pid)
	go p.feed()
	go func() {
		err := p.cmd.Wait()
		p.wanted, p.exit = p.stopping.Load(), err
		kill(p.cmd) // processes that it has left behind
		p.log.Debug("an MCP server has ended", "pid", p.cmd.Process.Pid, "error", err)
		close(p.ended)
		to.ended(p)
	}()
	return p, nil
}

// command returns the command of the program, in a sandbox if one is configured.
func command(c *Config) (*exec.Cmd, error) {
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	if c.Sandbox == nil || cmd.Err != nil {
		return cmd, cmd.Err
	}
	name, args := c.Sandbox.Wrap(cmd.Path, cmd.Args)
	return &exec.Cmd{Path: name, Args: args}, nil
}

// errorLog returns a writer that logs standard error line by line, at a limited rate.
func (p *process) errorLog() io.Writer {
	limit, dropped := rate.NewLimiter(logRate, logBurst), 0
	return &lines{limit: maxLogLine, emit: func(line []byte) {
		p.mu.Lock()
		if p.tail = append(p.tail, string(line)); len(p.tail) > tailLines {
			p.tail = p.tail[1:]
		}
		p.mu.Unlock()
		if !limit.Allow() {
			dropped++
			return
		}
		if dropped > 0 {
			p.log.Info("MCP server", "stderr_lines_left_out", dropped)
			dropped = 0
		}
		p.log.Info("MCP server", "stderr", string(line))
	}}
}

func (p *process) feed() {
	for {
		select {
		case line := <-p.queue:
			_, err := p.stdin.Write(append(line, '\n'))
			p.queued.Add(-int64(len(line)))
			if err != nil {
				terminate(p.cmd) // it has closed its input, which ends the conversation
				return
			}
		case <-p.ended:
			return
		}
	}
}

// send queues a message. It never waits: only the caller of a program that does not read may suffer
// from it.
func (p *process) send(f frame) error {
	select {
	case <-p.ended:
		return errEnded
	default:
	}
	line := f.encode()
	size := int64(len(line))
	if n := p.queued.Add(size); n > queueBytes && n > size { // a single message may be larger
		p.queued.Add(-size)
		return errBusy
	}
	select {
	case p.queue <- line:
		return nil
	default:
		p.queued.Add(-size)
		return errBusy
	}
}

// stop ends the program in the order of MCP (2025-11-25, Lifecycle, "Shutdown"): it closes the
// input, then sends SIGTERM, then SIGKILL, each to the whole group. It does not wait for the end.
func (p *process) stop() {
	if p.stopping.Swap(true) {
		return
	}
	_ = p.stdin.Close() // the program may have ended
	go func() {
		for _, step := range []func(*exec.Cmd){terminate, kill} {
			select {
			case <-p.ended:
				return
			case <-time.After(grace):
				step(p.cmd)
			}
		}
	}()
}

// logEnd logs that the program has ended by itself.
func (p *process) logEnd(c *Config) {
	log := c.Logger.With("command", c.Command[0], "after_ms", c.Now().Sub(p.begun).Milliseconds())
	if p.exit != nil {
		log = log.With("error", p.exit)
	}
	log.Warn("a program has ended by itself, and its sessions with it")
}
