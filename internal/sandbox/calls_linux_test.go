package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is a system call that takes a process id, or creates something that outlives its process.
type call struct {
	name string
	note string // about the arguments
	args []any  // numbers, and pointers
	want string // the result in a strict sandbox without write access
}

const (
	refusal = "EPERM"  // from the filter, or for signals from Landlock
	denial  = "EACCES" // from Landlock, for files
	done    = "0"
)

// calls returns the calls for a program in the sandbox. target is an outside process of the same
// user, and file belongs to that user.
func calls(target int, file string) []call {
	zero, limit := make([]byte, 1<<12), &syscall.Rlimit{Max: 1 << 20}
	path, other, name, none := cString(file), cString(file+"2"), cString("user.x"), unsafe.Pointer(nil)
	info, params, attr := make([]byte, 128), make([]byte, 8), make([]byte, 56)
	binary.NativeEndian.PutUint32(info[8:], ^uint32(0)) // SI_QUEUE: the kernel refuses other codes
	binary.NativeEndian.PutUint32(attr, uint32(len(attr)))
	attr[16] = 19 // the priority that it has by then
	header := make([]byte, 8)
	binary.NativeEndian.PutUint32(header, unix.LINUX_CAPABILITY_VERSION_3)
	binary.NativeEndian.PutUint32(header[4:], uint32(target))
	cpus, here := make([]byte, 128), unix.AT_FDCWD
	cpus[0] = 0xff
	pidfd, _ := unix.PidfdOpen(target, 0)
	own, _ := os.Open(os.Args[0])
	clock := ^target<<3 | 2 // the clock of its processor time
	return []call{
		// Signals.
		{"kill", "", []any{target, 0}, refusal},
		{"tkill", "", []any{target, 0}, refusal},
		{"tgkill", "", []any{target, target, 0}, refusal},
		{"rt_sigqueueinfo", "", []any{target, 0, info}, refusal},
		{"rt_tgsigqueueinfo", "", []any{target, target, 0, info}, refusal},
		{"pidfd_open", "is only a name", []any{target, 0}, done},
		{"pidfd_send_signal", "", []any{pidfd, 0, none, 0}, refusal},
		// Limits, priorities and processors.
		{"prlimit64", "another", []any{target, unix.RLIMIT_CORE, limit, none}, refusal},
		{"prlimit64", "the own id is not 0", []any{os.Getpid(), unix.RLIMIT_CORE, limit, none}, refusal},
		{"prlimit64", "itself", []any{0, unix.RLIMIT_CORE, none, zero}, done},
		{"prlimit64", "reads", []any{target, unix.RLIMIT_CORE, none, zero}, done},
		{"setpriority", "another", []any{unix.PRIO_PROCESS, target, 19}, refusal},
		{"setpriority", "a group", []any{unix.PRIO_PGRP, 0, 19}, refusal},
		{"setpriority", "a user", []any{unix.PRIO_USER, 0, 19}, refusal},
		{"setpriority", "itself", []any{unix.PRIO_PROCESS, 0, 19}, done},
		{"ioprio_set", "another", []any{1, target, 3 << 13}, refusal},
		{"ioprio_set", "a user", []any{3, 0, 3 << 13}, refusal},
		{"ioprio_set", "itself", []any{1, 0, 3 << 13}, done},
		{"sched_setaffinity", "another", []any{target, len(cpus), cpus}, refusal},
		{"sched_setaffinity", "itself", []any{0, len(cpus), cpus}, done},
		{"sched_setscheduler", "another", []any{target, unix.SCHED_NORMAL, params}, refusal},
		{"sched_setscheduler", "itself", []any{0, unix.SCHED_NORMAL, params}, done},
		{"sched_setparam", "another", []any{target, params}, refusal},
		{"sched_setparam", "itself", []any{0, params}, done},
		{"sched_setattr", "another", []any{target, attr, 0}, refusal},
		{"sched_setattr", "itself", []any{0, attr, 0}, done},
		{"prctl", "shares processors", []any{unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_SHARE_TO, target, 0, 0}, refusal},
		{"getpriority", "reads", []any{unix.PRIO_PROCESS, target}, done},
		{"ioprio_get", "reads", []any{1, target}, done},
		{"sched_getaffinity", "reads", []any{target, len(zero), zero}, done},
		{"sched_getscheduler", "reads", []any{target}, done},
		{"sched_getparam", "reads", []any{target, zero}, done},
		{"sched_getattr", "reads", []any{target, zero, len(attr), 0}, done},
		{"sched_rr_get_interval", "reads", []any{target, zero}, done},
		// Memory and state.
		{"ptrace", "", []any{unix.PTRACE_SEIZE, target, 0, 0}, refusal},
		{"process_vm_readv", "", []any{target, zero, 0, zero, 0, 0}, refusal},
		{"process_vm_writev", "", []any{target, zero, 0, zero, 0, 0}, refusal},
		{"process_madvise", "", []any{pidfd, zero, 0, unix.MADV_COLD, 0}, refusal},
		{"process_mrelease", "", []any{pidfd, 0}, refusal},
		{"pidfd_getfd", "", []any{pidfd, 0, 0}, refusal},
		{"kcmp", "", []any{target, target, 0, 0, 0}, refusal},
		{"move_pages", "", []any{target, 0, none, none, none, 0}, refusal},
		{"migrate_pages", "", []any{target, 64, zero, zero}, refusal},
		{"get_robust_list", "", []any{target, zero, zero}, refusal},
		{"perf_event_open", "", []any{zero, target, -1, -1, 0}, refusal},
		{"setns", "", []any{pidfd, unix.CLONE_NEWNET}, refusal},
		{"capget", "reads", []any{header, zero}, done},
		{"clock_gettime", "reads", []any{clock, zero}, done},
		{"timer_create", "its timer, by the clock of another", []any{clock, none, zero}, done},
		// Groups and children.
		{"setpgid", "", []any{0, 0}, refusal},
		{"setsid", "", nil, refusal},
		{"getpgid", "reads", []any{target}, done},
		{"getsid", "reads", []any{target}, done},
		{"wait4", "", []any{target, none, unix.WNOHANG, none}, "ECHILD"},
		{"waitid", "", []any{unix.P_PID, target, zero, unix.WEXITED | unix.WNOHANG, none}, "ECHILD"},
		// The kernel rejects both pairs of flags, so no child is created.
		{"clone", "a child of the server", []any{unix.CLONE_PARENT | unix.CLONE_THREAD}, refusal},
		{"clone", "a namespace", []any{unix.CLONE_NEWNS | unix.CLONE_FS}, refusal},
		{"clone3", "", []any{none, 0}, "ENOSYS"},
		// These create objects that outlive the process.
		{"shmget", "", []any{0, 1 << 20, 0o600 | unix.IPC_CREAT}, refusal},
		{"shmat", "", []any{0, none, 0}, refusal},
		{"shmctl", "", []any{0, unix.IPC_STAT, zero}, refusal},
		{"msgget", "", []any{0, 0o600 | unix.IPC_CREAT}, refusal},
		{"msgsnd", "", []any{0, zero, 0, 0}, refusal},
		{"msgrcv", "", []any{0, zero, 0, 0, 0}, refusal},
		{"msgctl", "", []any{0, unix.IPC_STAT, zero}, refusal},
		{"semget", "", []any{0, 1, 0o600 | unix.IPC_CREAT}, refusal},
		{"semop", "", []any{0, zero, 1}, refusal},
		{"semtimedop", "", []any{0, zero, 1, none}, refusal},
		{"semctl", "", []any{0, 0, unix.IPC_STAT, zero}, refusal},
		{"mq_open", "", []any{name, unix.O_CREAT | unix.O_RDWR, 0o600, none}, refusal},
		{"mq_unlink", "", []any{name}, refusal},
		{"add_key", "", []any{cString("user"), name, zero, 1, -4}, refusal},
		{"request_key", "", []any{cString("user"), name, none, 0}, refusal},
		{"keyctl", "", []any{0, -3, 0}, refusal},
		{"openat", "creates", []any{here, other, unix.O_CREAT | unix.O_WRONLY, 0o600}, denial},
		{"mkdirat", "", []any{here, other, 0o700}, denial},
		{"mknodat", "", []any{here, other, unix.S_IFIFO | 0o600, 0}, denial},
		{"symlinkat", "", []any{path, here, other}, denial},
		{"linkat", "", []any{here, path, here, other, 0}, denial},
		{"renameat2", "", []any{here, path, here, other, 0}, denial},
		{"unlinkat", "", []any{here, path, 0}, denial},
		{"truncate", "", []any{path, 0}, denial},
		// Attributes of files.
		{"chmod", "", []any{path, 0o666}, refusal},
		{"fchmod", "", []any{own.Fd(), 0o755}, refusal},
		{"fchmodat", "", []any{here, path, 0o666}, refusal},
		{"fchmodat2", "", []any{here, path, 0o666, 0}, refusal},
		{"chown", "", []any{path, -1, -1}, refusal},
		{"lchown", "", []any{path, -1, -1}, refusal},
		{"fchown", "", []any{own.Fd(), -1, -1}, refusal},
		{"fchownat", "", []any{here, path, -1, -1, 0}, refusal},
		{"utime", "", []any{path, none}, refusal},
		{"utimes", "", []any{path, none}, refusal},
		{"futimesat", "", []any{here, path, none}, refusal},
		{"utimensat", "", []any{here, path, none, 0}, refusal},
		{"setxattr", "", []any{path, name, zero, 1, 0}, refusal},
		{"lsetxattr", "", []any{path, name, zero, 1, 0}, refusal},
		{"fsetxattr", "", []any{own.Fd(), name, zero, 1, 0}, refusal},
		{"setxattrat", "", []any{here, path, 0, name, zero, 16}, refusal},
		{"removexattr", "", []any{path, name}, refusal},
		{"lremovexattr", "", []any{path, name}, refusal},
		{"fremovexattr", "", []any{own.Fd(), name}, refusal},
		{"removexattrat", "", []any{here, path, 0, name}, refusal},
		{"ioctl", "flags", []any{own.Fd(), unix.FS_IOC_SETFLAGS, zero}, refusal},
		{"ioctl", "flags, above 32 bits", []any{own.Fd(), 1<<32 | unix.FS_IOC_SETFLAGS, zero}, refusal},
		{"ioctl", "flags and projects", []any{own.Fd(), fsSetXattr, zero}, refusal},
		{"inotify_init", "", nil, refusal},
		{"inotify_init1", "", []any{0}, refusal},
		{"inotify_add_watch", "", []any{0, path, unix.IN_ALL_EVENTS}, refusal},
		{"fanotify_init", "", []any{0, 0}, refusal},
		{"fanotify_mark", "", []any{0, 0, 0, 0, path}, refusal},
	}
}

func cString(s string) []byte { return append([]byte(s), 0) }

// make makes the call and returns the name of its error, or "0".
func (c call) make(number int) string {
	var raw [6]uintptr
	var pins runtime.Pinner
	defer pins.Unpin()
	for i, a := range c.args {
		switch a := a.(type) {
		case int:
			raw[i] = uintptr(a)
		case uintptr:
			raw[i] = a
		case []byte:
			pins.Pin(&a[0])
			raw[i] = uintptr(unsafe.Pointer(&a[0]))
		case *syscall.Rlimit:
			pins.Pin(a)
			raw[i] = uintptr(unsafe.Pointer(a))
		}
	}
	_, _, errno := unix.RawSyscall6(uintptr(number), raw[0], raw[1], raw[2], raw[3], raw[4], raw[5])
	if errno == 0 {
		return done
	}
	return unix.ErrnoName(errno)
}

func (c call) String() string { return strings.TrimSpace(c.name + " " + c.note) }

// makeCalls makes all calls. It also makes the kernel signal the target when a pipe is readable.
func makeCalls(args []string) any {
	runtime.LockOSThread()
	target, _ := strconv.Atoi(args[0])
	table, _ := arch.GetInfo("")
	for _, c := range calls(target, args[1]) {
		if number, ok := table.SyscallNames[c.name]; ok {
			fmt.Printf("%s: %s\n", c, c.make(number))
		}
	}
	var pipe [2]int
	err := unix.Pipe(pipe[:])
	for _, c := range [][2]int{
		{unix.F_SETOWN, target}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC},
	} {
		if _, e := unix.FcntlInt(uintptr(pipe[0]), c[0], c[1]); err == nil {
			err = e
		}
	}
	_, _ = unix.Write(pipe[1], []byte("x"))
	return err
}

// users returns the users for running programs: the user of this process, and for root also an
// ordinary one.
func users() (out []*syscall.Credential) {
	own := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true}
	if out = append(out, own); os.Getuid() == 0 {
		out = append(out, &syscall.Credential{Uid: 65534, Gid: 65534})
	}
	return out
}

// TestCalls: EN-11. A program cannot affect another process of its user, and leaves no objects
// behind.
func TestCalls(t *testing.T) {
	for _, user := range users() {
		t.Run(fmt.Sprint("as ", user.Uid), func(t *testing.T) {
			target := exec.Command("/bin/sleep", "600")
			target.SysProcAttr = &syscall.SysProcAttr{Credential: user}
			if err := target.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = target.Process.Kill(); _ = target.Wait() }()
			pid, file := target.Process.Pid, fileOf(t, user)
			got := Policy{}.as(t, user, "calls", strconv.Itoa(pid), file)
			for _, c := range calls(pid, file) {
				_, answer, made := strings.Cut("\n"+got+"\n", fmt.Sprintf("\n%s: ", c))
				answer, _, _ = strings.Cut(answer, "\n")
				if made && answer != c.want {
					t.Errorf("EN-11 %s: got %s, want %s", c, answer, c.want)
				} else if _, ok := table(t, runtime.GOARCH).SyscallNames[c.name]; ok && !made {
					t.Errorf("EN-11 %s was not made", c)
				}
			}
			if !strings.HasSuffix(got, "<nil>") {
				t.Errorf("EN-11 the owner of a pipe cannot be set: %s", got[max(0, len(got)-80):])
			}
			state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || !strings.Contains(string(state), ") S ") {
				t.Errorf("EN-11 the process outside has ended: %s %v", state, err)
			}
		})
	}
}

// TestAttributes: EN-11. A program with write access may set attributes.
func TestAttributes(t *testing.T) {
	for _, user := range users() {
		file := fileOf(t, user)
		for _, c := range []struct {
			policy Policy
			want   string
		}{
			{Policy{Read: []string{filepath.Dir(file)}}, "operation not permitted"},
			{Policy{Write: []string{filepath.Dir(file)}}, "<nil>"},
		} {
			if got := c.policy.as(t, user, "chmod", file); !strings.HasSuffix(got, c.want) {
				t.Errorf("EN-11 chmod as %d, write %v: got %q, want %q", user.Uid, c.policy.Write, got, c.want)
			}
		}
	}
}

// fileOf returns a file that belongs to a user and is reachable for that user.
func fileOf(t *testing.T, user *syscall.Credential) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(dir), dir, file} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, int(user.Uid), int(user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// as runs a program in the sandbox as a user and returns its output.
func (p Policy) as(t *testing.T, user *syscall.Credential, mode string, args ...string) string {
	t.Helper()
	c := p.command(executable, append([]string{executable, "program", mode}, args...))
	c.SysProcAttr.Credential = user
	c.Dir = "/"
	out, _ := c.CombinedOutput()
	return strings.TrimSpace(string(out))
}

func table(t *testing.T, machine string) *arch.Info {
	t.Helper()
	info, err := arch.GetInfo(machine)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestFilter: EN-11. The filters of both architectures make the same decisions, based only on the
// number and the arguments of the call.
func TestFilter(t *testing.T) {
	machines := []string{"amd64", "arm64"}
	const allowed, eperm, enosys = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | 1, unix.SECCOMP_RET_ERRNO | 38
	for _, machine := range machines {
		info := table(t, machine)
		vm, err := bpf.NewVM((&Policy{}).program(info))
		if err != nil {
			t.Fatal(err)
		}
		decide := func(id uint32, number int, args ...uint64) uint32 {
			data := make([]byte, 64) // bpf.VM loads words in big-endian order
			binary.BigEndian.PutUint32(data[offsetNumber:], uint32(number))
			binary.BigEndian.PutUint32(data[offsetArch:], id)
			for i, a := range args {
				binary.BigEndian.PutUint32(data[offsetArguments+8*i:], uint32(a))
				binary.BigEndian.PutUint32(data[offsetArguments+8*i+4:], uint32(a>>32))
			}
			got, err := vm.Run(data)
			if err != nil {
				t.Fatal(err)
			}
			return uint32(got)
		}
		check := func(what string, got, want uint32) {
			if got != want {
				t.Errorf("EN-11 %s, %s: got %#x, want %#x", machine, what, got, want)
			}
		}
		id, restricted := uint32(info.ID), restricted()
		for name, number := range info.SyscallNames {
			want := uint32(allowed)
			if slices.Contains(slices.Concat(refused(), attributes, network), name) {
				want = eperm
			} else if slices.Contains(absent, name) {
				want = enosys
			}
			if _, ok := restricted[name]; !ok {
				check(name, decide(id, number), want)
				continue
			}
			// An argument may equal the number of an allowed call: 1 and 64 are write.
			for _, other := range []uint64{1, 64, uint64(info.SyscallNames["prlimit64"])} {
				switch name {
				case "prctl", "ioctl", "clone":
				default:
					check(name+" with the number of a call", decide(id, number, other, other, other), eperm)
				}
			}
		}
		prlimit, ioctl, clone := info.SyscallNames["prlimit64"], info.SyscallNames["ioctl"], info.SyscallNames["clone"]
		check("prlimit64 of itself", decide(id, prlimit, 0, 7, 1<<40), allowed)
		check("prlimit64 that reads", decide(id, prlimit, 4711, 7, 0, 1), allowed)
		check("prlimit64, a pointer above 32 bits", decide(id, prlimit, 4711, 7, 1<<40), eperm)
		check("ioctl", decide(id, ioctl, 1, unix.TCGETS), allowed)
		check("clone, as fork does", decide(id, clone, uint64(unix.SIGCHLD)), allowed)
		check("clone of a thread", decide(id, clone, 0x3d0f00), allowed)
		check("clone into a network", decide(id, clone, unix.CLONE_NEWNET), eperm)
		check("another architecture", decide(id+1, info.SyscallNames["read"]), eperm)
		check("an unknown call", decide(id, 9999), eperm)
		check("another table", decide(id, otherTable|info.SyscallNames["read"]), enosys)
	}
	known := maps.Clone(table(t, "386").SyscallNames)
	for _, machine := range append(machines, "arm") {
		maps.Copy(known, table(t, machine).SyscallNames)
	}
	for _, name := range slices.Concat(refused(), attributes, network, absent) {
		if _, ok := known[name]; !ok && name != "file_setattr" { // newer than the library
			t.Errorf("EN-11 no architecture has a system call %s", name)
		}
	}
	// A newer library may name calls that belong in the lists above.
	for _, machine := range machines {
		for name, number := range table(t, machine).SyscallNames {
			if number > lookedAt {
				t.Errorf("EN-11 %s has %s: does it act on another process, or outlive its own?", machine, name)
			}
		}
	}
}

// lookedAt is the newest system call that the lists cover: open_tree_attr.
const lookedAt = 467
