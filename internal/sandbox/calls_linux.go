package sandbox

import (
	"maps"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// kept are the system calls that are kept from the program: an MCP server has no use for them, and they have
// led out of sandboxes (memory of other processes, namespaces and mounts, code for the kernel, keys of the
// user, clocks). io_uring makes system calls that a filter does not see.
var kept = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "unshare", "setns",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "acct", "syslog", "quotactl", "quotactl_fd", "vhangup", "lookup_dcookie",
	"add_key", "request_key", "keyctl", "open_by_handle_at", "name_to_handle_at", "fanotify_init",
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
	"iopl", "ioperm", "modify_ldt", "nfsservctl", "personality", "vmsplice",
	"setsid", "setpgid", // out of the process group, by which it is ended with all that it has started
}

// network are those that a program without a network does not need. socketpair stays: it reaches no process outside.
var network = []string{"socket", "socketcall"}

// filter allows every system call by its name but those in kept. A call without a name here is refused, and
// so are the calls of another architecture, such as those of 32 bits: they have other numbers, and a filter
// that lists the refused ones would let them through.
func filter(online bool) (seccomp.Filter, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Filter{}, err
	}
	refused := slices.Clone(kept)
	if !online {
		refused = append(refused, network...)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(machine.SyscallNames)), func(name string) bool {
		return slices.Contains(refused, name)
	})
	return seccomp.Filter{Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls:      []seccomp.SyscallGroup{{Names: names, Action: seccomp.ActionAllow}},
	}}, nil
}
