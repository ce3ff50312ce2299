package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// These are offsets in struct seccomp_data, seccomp(2), on a little-endian machine.
const (
	offsetNumber    = 0
	offsetArch      = 4
	offsetArguments = 16
	half            = 4
)

// otherTable is the first number in the x32 table of system calls on amd64. Other architectures do
// not reach it.
const otherTable = 0x40000000

// check compares one half of an argument.
type check struct {
	offset uint32
	test   bpf.JumpTest
	value  uint32
}

// low checks the low half of an argument. The kernel ignores the rest of numbers and flags.
func low(argument uint32, test bpf.JumpTest, value uint32) check {
	return check{offsetArguments + 2*half*argument, test, value}
}

// high checks the high half of an argument, such as a pointer.
func high(argument uint32, test bpf.JumpTest, value uint32) check {
	return check{offsetArguments + 2*half*argument + half, test, value}
}

// rule allows a system call if all checks of one alternative hold. A rule without alternatives refuses it.
type rule [][]check

// program returns the instructions that decide. They always return, because the accumulator no
// longer holds the number. (The conditions of the library would continue and compare an argument
// with the numbers of other calls.)
func (r rule) program() (out []bpf.Instruction) {
	for _, checks := range r {
		alternative := []bpf.Instruction{bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}}
		for _, c := range slices.Backward(checks) {
			alternative = slices.Concat([]bpf.Instruction{
				bpf.LoadAbsolute{Off: c.offset, Size: half},
				bpf.JumpIf{Cond: c.test, Val: c.value, SkipFalse: uint8(len(alternative))},
			}, alternative)
		}
		out = append(out, alternative...)
	}
	return append(out, refuse(unix.EPERM))
}

func refuse(err unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(err)}
}

// filter allows the system calls in the library's table for this architecture, except those in the
// lists of this package. It refuses unknown calls and calls of another architecture, such as 32-bit
// ones: these have other numbers, and would pass a filter that lists refused numbers.
func (p *Policy) filter() ([]bpf.RawInstruction, error) {
	table, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, errors.New("the sandbox does not support big-endian machines")
	}
	return bpf.Assemble(p.program(table))
}

func (p *Policy) program(table *arch.Info) []bpf.Instruction {
	out := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: half},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(table.ID), SkipTrue: 1},
		refuse(unix.EPERM),
		bpf.LoadAbsolute{Off: offsetNumber, Size: half},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: otherTable, SkipFalse: 1},
		refuse(unix.ENOSYS),
	}
	rules := p.rules(slices.Collect(maps.Keys(table.SyscallNames)))
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		decide := rules[name].program()
		if slices.Contains(absent, name) {
			decide = []bpf.Instruction{refuse(unix.ENOSYS)}
		}
		number := uint32(table.SyscallNames[name])
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(decide))})
		out = append(out, decide...)
	}
	return append(out, refuse(unix.EPERM))
}

// rules returns the rule for each of the named system calls.
func (p *Policy) rules(names []string) map[string]rule {
	never := refused()
	if !p.Network {
		never = append(never, network...)
	}
	if len(p.Write) == 0 {
		never = append(never, attributes...)
	}
	restricted, out := restricted(), map[string]rule{}
	for _, name := range names {
		r, ok := restricted[name]
		switch {
		case slices.Contains(never, name):
			r = nil
		case !ok:
			r = rule{{}}
		}
		out[name] = r
	}
	return out
}

// load applies a filter to this thread.
func load(filter []bpf.RawInstruction) error {
	program := make([]unix.SockFilter, 0, len(filter))
	for _, i := range filter {
		program = append(program, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	arg := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&arg)))
	if errno != 0 {
		return fmt.Errorf("the filter of system calls cannot be loaded: %w", errno)
	}
	return nil
}
