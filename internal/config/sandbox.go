package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sandbox"
)

// Sandbox limits the program of an MCP server, on Linux. Without a Preset, the program may do
// everything that its user may.
type Sandbox struct {
	Preset     string   `yaml:"preset"` // strict, network
	Read       []string `yaml:"read"`   // files and directories
	Write      []string `yaml:"write"`
	Processes  int      `yaml:"processes"`  // beyond those of its user; negative for no limit
	OpenFiles  int      `yaml:"open_files"` // negative for the limit of the server
	FileSize   int      `yaml:"file_size"`  // MiB per file; negative for no limit
	Memory     int      `yaml:"memory"`     // MiB per process; negative for no limit
	CPU        Duration `yaml:"cpu"`        // per process
	BestEffort bool     `yaml:"best_effort"`
}

// The defaults of a preset.
const (
	sandboxProcesses = 64
	sandboxOpenFiles = 1024
	sandboxFileSize  = 100  // MiB
	sandboxMemory    = 2048 // MiB
	sandboxCPU       = 365 * 24 * time.Hour
)

// Set reports whether a sandbox is configured.
func (s *Sandbox) Set() bool { return s.Preset != "" }

// Policy returns the sandbox of a program that runs in dir, or nil. The program may read dir.
func (s *Sandbox) Policy(dir string) *sandbox.Policy {
	if !s.Set() {
		return nil
	}
	or := func(value, preset int) int {
		if value == 0 {
			return preset
		}
		return max(value, 0)
	}
	p := &sandbox.Policy{
		Network: s.Preset == "network", Read: slices.Clone(s.Read), Write: s.Write,
		Processes: or(s.Processes, sandboxProcesses), OpenFiles: or(s.OpenFiles, sandboxOpenFiles),
		FileSize: int64(or(s.FileSize, sandboxFileSize)) << 20, Memory: int64(or(s.Memory, sandboxMemory)) << 20,
		CPU: time.Duration(s.CPU), BestEffort: s.BestEffort,
	}
	if filepath.IsAbs(dir) {
		p.Read = append(p.Read, dir)
	}
	return p
}

func (s *Sandbox) validate(add func(string, string, ...any), key string, program bool) {
	set := len(s.Read)+len(s.Write)+s.Processes+s.OpenFiles+s.FileSize+s.Memory != 0 || s.CPU != 0 || s.BestEffort
	switch {
	case s.Set() && !program:
		add(key, "is for a command")
	case !slices.Contains([]string{"", "strict", "network"}, s.Preset):
		add(key+".preset", "%q is not one of strict, network", s.Preset)
	case set && !s.Set():
		add(key+".preset", "is missing: strict, or network for a program that opens connections")
	}
	for _, p := range slices.Concat(s.Read, s.Write) {
		if !filepath.IsAbs(p) {
			add(key, "%q is not an absolute path", p)
		}
	}
	checkBetween(add, key+".cpu", s.CPU, 0, sandboxCPU)
	if s.Set() && runtime.GOOS != "linux" {
		add(key, "is not available on %s: it is made of what Linux offers", runtime.GOOS)
	}
}

// ParseSandbox parses a sandbox from one text: a preset, then comma-separated paths that the
// program may read, or write if they start with "+": "strict,/srv/files,+/var/lib/notes".
func ParseSandbox(text string) (Sandbox, error) {
	preset, rest, _ := strings.Cut(text, ",")
	s := Sandbox{Preset: preset}
	for _, path := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		if own, write := strings.CutPrefix(path, "+"); write {
			s.Write = append(s.Write, own)
		} else {
			s.Read = append(s.Read, path)
		}
	}
	var err error
	s.validate(func(key, format string, args ...any) {
		err = errors.Join(err, fmt.Errorf("%s %s", key, fmt.Sprintf(format, args...)))
	}, "--sandbox", true)
	if !s.Set() {
		err = errors.Join(err, errors.New("--sandbox: name a preset: strict, or network for a program that opens connections"))
	}
	return s, err
}
