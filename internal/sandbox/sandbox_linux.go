package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// executable is this program, even if its file was replaced after the start.
const executable = "/proc/self/exe"

// Kernel describes the features of this kernel.
func Kernel() string {
	out := fmt.Sprintf("Landlock %d", landlockABI())
	if seccomp.Supported() {
		out += ", seccomp"
	}
	return out
}

func (p *Policy) lacking() (out []string) {
	switch abi := landlockABI(); {
	case abi < abiFiles:
		out = append(out, fmt.Sprintf("files cannot be kept from it: this kernel has Landlock %d, and Linux 6.2 is needed"+
			" (Landlock %d)", abi, abiFiles))
	case abi < abiSignals:
		out = append(out, fmt.Sprintf("it could send signals to other processes of its user: this kernel has Landlock %d,"+
			" and Linux 6.12 is needed (Landlock %d)", abi, abiSignals))
	}
	if !seccomp.Supported() {
		out = append(out, "system calls cannot be kept from it: this kernel has no seccomp filters")
	}
	return out
}

// Keeps reports whether the policy denies the program access to a file on this kernel. A nil policy
// denies nothing.
func (p *Policy) Keeps(path string) bool {
	if p == nil || landlockABI() < abiFiles {
		return false
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		path = found
	}
	return !slices.ContainsFunc(slices.Concat(system, p.Read, p.Write), func(open string) bool {
		if found, err := filepath.EvalSymlinks(open); err == nil {
			open = found
		}
		within, err := filepath.Rel(open, path)
		return err != nil || within == "." || filepath.IsLocal(within)
	})
}

// become restricts this process and executes the program. The restrictions apply to this thread,
// which is the only one after exec.
func (p *Policy) become(path string, args []string) error {
	runtime.LockOSThread()
	if err := p.Check(os.Geteuid()); err != nil {
		return err
	}
	env, limits := os.Environ(), p.limits()
	program, err := p.filter()
	if err != nil && !p.BestEffort {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := p.landlock(path); err != nil {
		return err
	}
	if err == nil && (!p.BestEffort || seccomp.Supported()) {
		if err := load(program); err != nil {
			return err
		}
	}
	for _, l := range limits { // last, because they also apply to the steps above
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("the limit of %s cannot be %d: %w", l.name, l.most, err)
		}
	}
	err = syscall.Exec(path, args, env)
	if errors.Is(err, syscall.EACCES) {
		return errors.New("it is not among the files that it may read: name its directory in upstream.sandbox.read")
	}
	return err
}

type limit struct {
	name     string
	resource int
	most     uint64
}

// limits returns the limits for setrlimit(2). RLIMIT_DATA, unlike RLIMIT_AS, does not count
// reserved addresses: Node, Java and Go reserve many times the memory that they use.
func (p *Policy) limits() (out []limit) {
	out = append(out, limit{"core", unix.RLIMIT_CORE, 0})
	add := func(name string, resource int, most int64) {
		if most > 0 {
			out = append(out, limit{name, resource, uint64(most)})
		}
	}
	add("open_files", unix.RLIMIT_NOFILE, int64(p.OpenFiles))
	add("file_size", unix.RLIMIT_FSIZE, p.FileSize)
	add("cpu", unix.RLIMIT_CPU, int64(math.Ceil(p.CPU.Seconds())))
	add("memory", unix.RLIMIT_DATA, p.Memory)
	if p.Processes > 0 {
		add("processes", unix.RLIMIT_NPROC, int64(tasksOf(os.Getuid())+p.Processes))
	}
	return out
}

// tasksOf counts the visible threads of a user, as RLIMIT_NPROC does. It counts this process as one,
// because exec ends all its threads but one.
func tasksOf(uid int) (n int) {
	self := strconv.Itoa(os.Getpid())
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, p := range processes {
		if c := p.Name()[0]; c < '0' || c > '9' {
			continue
		}
		tasks, err := os.ReadDir("/proc/" + p.Name() + "/task")
		info, statErr := os.Stat("/proc/" + p.Name() + "/task")
		if err != nil || statErr != nil {
			continue // it has ended
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == uid {
			if p.Name() == self {
				tasks = tasks[:1]
			}
			n += len(tasks)
		}
	}
	return n
}
