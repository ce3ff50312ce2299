//go:build release

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// packed is a file in an archive.
type packed struct {
	mode    fs.FileMode
	owner   string
	content []byte
}

// archived lists the files of each archive, in addition to the program.
var archived = []string{
	"LICENSE", "README.md", "config.yaml", "mcp-authd.service", "man/mcp-authd.1", "man/mcp-authd-user-add.1",
	"completions/mcp-authd.bash", "completions/_mcp-authd", "completions/mcp-authd.fish", "completions/mcp-authd.ps1",
}

// TestArchives checks that each archive has one directory with the files that docs/install.md
// lists, and a program for its system and processor (DL-04).
func TestArchives(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows", "freebsd"} {
		for _, processor := range []string{"amd64", "arm64"} {
			t.Run(system+"/"+processor, func(t *testing.T) {
				kind, program := ".tar.gz", "mcp-authd"
				if system == "windows" {
					kind, program = ".zip", "mcp-authd.exe"
				}
				path := one(t, "mcp-authd_*_"+system+"_"+processor+kind)
				below := strings.TrimSuffix(filepath.Base(path), kind) + "/"
				files := unpacked(t, path)
				for name, file := range files {
					if !strings.HasPrefix(name, below) || file.mode&0o022 != 0 || file.owner != "root" {
						t.Errorf("DL-04: %s is of %s, and has the mode %v", name, file.owner, file.mode)
					}
				}
				for _, name := range archived {
					if len(files[below+name].content) == 0 {
						t.Errorf("DL-04: there is no %s", name)
					}
				}
				it := files[below+program]
				if got := formOf(it.content); got != system+"/"+processor || it.mode.Perm() != 0o755 {
					t.Errorf("DL-04: the program is for %s, and has the mode %v", got, it.mode)
				}
			})
		}
	}
}

// unpacked returns the files of an archive, by name.
func unpacked(t *testing.T, path string) map[string]packed {
	t.Helper()
	out := map[string]packed{}
	if strings.HasSuffix(path, ".zip") {
		z, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(io.LimitReader(r, 1<<28))
			if err := errors.Join(err, r.Close()); err != nil {
				t.Fatal(err)
			}
			out[f.Name] = packed{f.Mode(), "root", content} // a zip archive has no owners
		}
		return out
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.LimitReader(files, 1<<28))
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			out[h.Name] = packed{h.FileInfo().Mode(), h.Uname, content}
		}
	}
}

// formOf returns the system and the processor of a program.
func formOf(program []byte) string {
	r := bytes.NewReader(program)
	if f, err := elf.NewFile(r); err == nil {
		system := map[elf.OSABI]string{elf.ELFOSABI_NONE: "linux", elf.ELFOSABI_FREEBSD: "freebsd"}[f.OSABI]
		return system + "/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	}
	if f, err := macho.NewFile(r); err == nil {
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	}
	f, err := pe.NewFile(r)
	if err != nil {
		return fmt.Sprintf("nothing known (%v)", err)
	}
	return "windows/" + map[uint16]string{
		pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
	}[f.Machine]
}

// TestArchiveIsUsed runs the two commands of docs/install.md, and a user signs in. The archive for
// another processor fails with the message that the page explains (DL-04).
func TestArchiveIsUsed(t *testing.T) {
	began := time.Now()
	dir := t.TempDir()
	path := one(t, "mcp-authd_*_linux_"+arch+".tar.gz")
	output(t, "tar", "-xzf", path, "-C", dir)
	demo(t, filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".tar.gz"), "mcp-authd"))
	t.Logf("from tar -xzf to the tools: %v", time.Since(began).Round(time.Second/10))

	emulated := map[string]string{"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"}[otherArch]
	if _, err := os.Stat("/proc/sys/fs/binfmt_misc/" + emulated); err == nil {
		return // this machine can run it
	}
	if err := command(t, binary(t, otherArch), "version").Run(); !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("DL-04: the program for %s: got %v, want %v", otherArch, err, syscall.ENOEXEC)
	}
	page, err := os.ReadFile(top + "/docs/install.md")
	if err != nil || !strings.Contains(strings.ToLower(string(page)), syscall.ENOEXEC.Error()) {
		t.Errorf("DL-04: docs/install.md does not explain %q (%v)", syscall.ENOEXEC, err)
	}
}
