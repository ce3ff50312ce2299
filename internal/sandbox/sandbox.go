// Package sandbox restricts a program with unprivileged features of Linux: Landlock for files,
// network and signals, seccomp for system calls, and resource limits.
//
// A process cannot be sandboxed from outside, nor by Go between fork and exec. So [Policy.Wrap]
// returns a command of this executable. Its main, or TestMain, must first call [Run], which applies
// the restrictions and then executes the program.
//
// A restriction that the kernel does not support is an error, unless the policy has BestEffort. The
// limits of memory, files and processor time apply to each process. The limit of processes counts
// all processes of the user, as the kernel does, and does not apply to root.
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Policy holds the permissions of a program. Reading and executing system files is always allowed.
type Policy struct {
	Network bool     // it may open sockets
	Read    []string // files or directories that it may read and execute
	Write   []string // files or directories that it may also change

	Processes  int           // added to the processes that its user has at the start; 0: unlimited
	OpenFiles  int           // per process; 0: the limit of the parent
	FileSize   int64         // bytes per file; 0: unlimited
	Memory     int64         // bytes of writable private memory per process; 0: unlimited
	CPU        time.Duration // per process, in whole seconds; 0: unlimited
	BestEffort bool          // skip restrictions that the kernel does not support
}

// Argument is the first argument of an executable that must sandbox itself.
const Argument = "__sandbox"

// ErrUnsupported means that this system or kernel does not support the policy.
var ErrUnsupported = errors.New("the sandbox is not available")

// Wrap returns the command that runs a program in the sandbox. path is the program's path, and args
// begin with its name.
func (p *Policy) Wrap(path string, args []string) (name string, wrapped []string) {
	text, _ := json.Marshal(p) // cannot fail
	return executable, append([]string{"mcp-authd", Argument, string(text), path}, args...)
}

// Check returns an error that wraps ErrUnsupported if this system does not support the policy for a
// program of the user uid. It also returns an error for a relative path, and for a limit of
// processes if uid is root.
func (p *Policy) Check(uid int) error {
	for _, path := range append(append([]string{}, p.Read...), p.Write...) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("sandbox: %q is not an absolute path", path)
		}
	}
	if missing := p.lacking(); len(missing) > 0 && !p.BestEffort {
		return fmt.Errorf("%w: %s", ErrUnsupported, strings.Join(missing, "; "))
	}
	if uid == 0 && p.Processes > 0 && !p.BestEffort {
		return errRoot
	}
	return nil
}

// errRoot reports a limit that would have no effect.
var errRoot = errors.New("root may have any number of processes, so the limit on processes would not hold: " +
	"have the program run as another user (upstream.user, protect --run-as), set sandbox.processes to -1, or best_effort")

// Lacking returns the parts of the policy that this system does not support, for an operator.
func (p *Policy) Lacking() []string { return p.lacking() }

// Run executes the program that the arguments of this process name, if they come from Wrap, and
// does not return. Otherwise it returns immediately. If the program cannot be sandboxed, it prints
// an error and exits with 126.
func Run() {
	if len(os.Args) < 5 || os.Args[1] != Argument {
		return
	}
	var p Policy
	err := json.Unmarshal([]byte(os.Args[2]), &p)
	if err == nil {
		err = p.become(os.Args[3], os.Args[4:])
	}
	fmt.Fprintf(os.Stderr, "sandbox: %s cannot be run: %s\n", os.Args[3], err)
	os.Exit(exitRefused)
}

// exitRefused is the exit status of shells for a program that cannot be executed.
const exitRefused = 126
