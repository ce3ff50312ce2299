// Package sandbox shuts a program in by what Linux offers to everyone, without root: Landlock for files,
// network and signals, seccomp for system calls, and limits of resources.
//
// A process cannot be shut in from outside, nor between fork and exec by Go. So [Policy.Wrap] makes a
// command of this executable, which begins with [Run], shuts itself in and then becomes the program:
// main, or TestMain, has to call [Run] first.
//
// What the kernel cannot do is an error, unless the policy is content with less (BestEffort). Limits of
// memory, files and processor time are those of each process; that of processes is for all of the user,
// as the kernel counts them, and does not bind root.
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

// Policy is what a program may do. Reading and executing what belongs to the system is always allowed.
type Policy struct {
	Network bool     // it may open sockets
	Read    []string // files, or directories with all below them, that it may read and execute
	Write   []string // those that it may change as well

	Processes  int           // that it may add to those that its user has; 0: any number
	OpenFiles  int           // of one process; 0: as many as its parent
	FileSize   int64         // bytes of one file; 0: any size
	Memory     int64         // bytes that one process may write to and shares with none; 0: any number
	CPU        time.Duration // of one process, in whole seconds; 0: any time
	BestEffort bool          // what the kernel lacks is left out
}

// Argument is the first one of an executable that is to shut itself in.
const Argument = "__sandbox"

// ErrUnsupported means that this system, or its kernel, cannot do what a policy demands.
var ErrUnsupported = errors.New("the sandbox is not available")

// Wrap returns the command that runs a program inside. Path is where the program is, and args begin with
// its name.
func (p *Policy) Wrap(path string, args []string) (name string, wrapped []string) {
	text, _ := json.Marshal(p) // always encodes
	return executable, append([]string{"mcp-authd", Argument, string(text), path}, args...)
}

// Check returns an error that wraps ErrUnsupported and says what this system lacks for the policy of a
// program that runs as the user uid, and another error for a relative path, and for a limit of processes that
// would not bind root.
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

// errRoot keeps an operator from relying on a limit that does not bind.
var errRoot = errors.New("root may have any number of processes, so the limit on processes would not hold: " +
	"have the program run as another user (upstream.user, protect --run-as), set sandbox.processes to -1, or best_effort")

// Lacking is what this system cannot do of the policy, in words for an operator.
func (p *Policy) Lacking() []string { return p.lacking() }

// Run becomes the program that the arguments of this process name, and does not return, if they are those
// of Wrap. It returns at once otherwise. It ends the process with 126, and a line on standard error, when
// the program cannot be shut in.
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

// exitRefused is what shells say of a program that cannot be run.
const exitRefused = 126
