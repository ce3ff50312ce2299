package sandbox

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused returns the system calls that no program may make.
func refused() []string { return slices.Concat(processes, objects, machine) }

// processes lists calls that act on other processes. Landlock handles signals.
var processes = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
	"setsid", "setpgid", // would leave the process group, which is killed as a whole
}

// objects lists calls that make kernel objects outside of the file system. These outlive the
// program and escape its limits (System V IPC, POSIX queues, keys), or report on files that the
// program may not read (inotify, fanotify).
var objects = []string{
	"ipc", "shmget", "shmat", "shmctl", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl",
	"semget", "semop", "semctl", "semtimedop", "semtimedop_time64",
	"mq_open", "mq_unlink", "mq_timedsend", "mq_timedsend_time64", "mq_timedreceive", "mq_timedreceive_time64",
	"mq_notify", "mq_getsetattr",
	"add_key", "request_key", "keyctl",
	"inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init", "fanotify_mark",
}

// machine lists calls that change the machine or have been used to escape from sandboxes. Filters
// do not see system calls made through io_uring.
var machine = []string{
	"mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr",
	"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns",
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "acct", "syslog", "quotactl", "quotactl_fd", "vhangup", "lookup_dcookie",
	"open_by_handle_at", "name_to_handle_at",
	"stime", "settimeofday", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex",
	"sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt", "nfsservctl", "personality", "vmsplice",
}

// network lists calls that are refused to a program without network access. socketpair stays
// allowed: it reaches no other process.
var network = []string{"socket", "socketcall"}

// attributes lists calls that are refused to a program that may not write anywhere. Landlock has no
// right for attributes, and a filter cannot read a path. Programs such as git and Python need these
// calls where they write, and can then use them on every file of their user.
var attributes = []string{
	"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "chown32", "fchown32",
	"lchown32", "utime", "utimes", "futimesat", "utimensat", "utimensat_time64", "file_setattr",
	"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
}

// absent lists calls that fail as on a kernel without them, so that programs fall back. The flags
// of clone3 are in memory, which a filter cannot read, but those of clone are in a register.
var absent = []string{"clone3"}

// restricted returns the system calls that are allowed with some arguments. C libraries and
// runtimes use 0 for their own process. The process ids of children are unknown when the filter is
// made.
func restricted() map[string]rule {
	own := rule{{low(0, bpf.JumpEqual, 0)}}
	return map[string]rule{
		"sched_setaffinity": own, "sched_setattr": own, "sched_setparam": own, "sched_setscheduler": own,
		"move_pages": own, "migrate_pages": own, "get_robust_list": own,
		// Reading another process's limits is harmless.
		"prlimit64":   {own[0], {low(2, bpf.JumpEqual, 0), high(2, bpf.JumpEqual, 0)}},
		"setpriority": {{low(0, bpf.JumpEqual, unix.PRIO_PROCESS), low(1, bpf.JumpEqual, 0)}},
		"ioprio_set":  {{low(0, bpf.JumpEqual, ioprioWhoProcess), low(1, bpf.JumpEqual, 0)}},
		"prctl":       {{low(0, bpf.JumpNotEqual, unix.PR_SCHED_CORE)}},
		"clone":       {{low(0, bpf.JumpBitsNotSet, foreign)}},
		// These change attributes of an open file, even if it is not open for writing.
		"ioctl": {{low(1, bpf.JumpNotEqual, unix.FS_IOC_SETFLAGS), low(1, bpf.JumpNotEqual, fsSetXattr)}},
	}
}

const (
	ioprioWhoProcess = 1
	fsSetXattr       = 0x401c5820 // FS_IOC_FSSETXATTR
	// foreign holds the flags of clone for namespaces, and for making a child of the server, which
	// would never reap it.
	foreign = unix.CLONE_PARENT | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)
