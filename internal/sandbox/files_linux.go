package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocked "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// These are the Landlock versions that a policy requires.
const (
	abiFiles   = 3 // includes truncation
	abiSignals = 6 // includes connections to abstract sockets
)

// landlockABI returns the Landlock version of this kernel, or 0.
func landlockABI() int {
	abi, err := landlocked.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// system lists the paths that every program needs. Only these parts of /etc are included, because
// our configuration may be in /etc.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/snap", "/etc/ssl", "/etc/pki",
	"/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/alternatives", "/etc/fonts",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path",
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf", "/etc/nsswitch.conf", "/etc/services",
	"/etc/protocols", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/mime.types",
	"/etc/os-release", "/etc/debian_version", "/etc/inputrc", "/etc/python3", "/run/systemd/resolve",
	"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version", "/proc/loadavg",
	"/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/net/core", "/proc/sys/fs",
	"/sys/devices/system", "/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup",
	"/dev/zero", "/dev/random", "/dev/urandom",
}

// devices lists devices that programs may write to.
var devices = []string{"/dev/null", "/dev/full"}

// landlock restricts this thread: it blocks all other files, signals to outside processes and,
// without network access, TCP.
func (p *Policy) landlock(path string) error {
	handled, scopes := landlock.V6.HandledAccessFS, landlock.V6.Scoped
	c := landlock.MustConfig(handled, scopes)
	if !p.Network {
		c = landlock.MustConfig(handled, scopes, landlock.V6.HandledAccessNet)
	}
	if p.BestEffort {
		c = c.BestEffort()
	}
	rules := []landlock.Rule{}
	read := func(path string) {
		if info, err := os.Stat(path); err != nil {
			return // not every system has all of these paths
		} else if info.IsDir() {
			rules = append(rules, landlock.RODirs(path))
			return
		}
		rules = append(rules, landlock.ROFiles(path))
	}
	for _, s := range system {
		read(s)
	}
	read(path)
	if found, err := filepath.EvalSymlinks(path); err == nil {
		read(found)
	}
	for _, own := range append(append([]string{}, p.Read...), p.Write...) {
		if _, err := os.Stat(own); err != nil {
			return fmt.Errorf("%s, which it may read, cannot be found: %w", own, err)
		}
		read(own)
	}
	for _, own := range p.Write {
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			rules = append(rules, landlock.RWDirs(own).WithRefer())
		} else {
			rules = append(rules, landlock.RWFiles(own))
		}
	}
	rules = append(rules, landlock.RWFiles(devices...).IgnoreIfMissing())
	return c.Restrict(rules...)
}
