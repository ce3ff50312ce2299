package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user and group ID of the image, as in distroless images.
const nobody = 65532

// files are the contents of a layer.
type files struct {
	b  bytes.Buffer
	w  *tar.Writer
	at time.Time
}

func newFiles(at time.Time) *files {
	f := &files{at: at}
	f.w = tar.NewWriter(&f.b)
	return f
}

// put adds a file, or, with a name that ends in "/", a directory.
func (f *files) put(name string, mode int64, owner int, content []byte) error {
	h := &tar.Header{
		Name: name, Mode: mode, Uid: owner, Gid: owner, Size: int64(len(content)), ModTime: f.at,
		Typeflag: tar.TypeReg, Format: tar.FormatPAX,
	}
	if strings.HasSuffix(name, "/") {
		h.Typeflag = tar.TypeDir
	}
	if err := f.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := f.w.Write(content)
	return err
}

func (f *files) layer() (v1.Layer, error) {
	if err := f.w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(f.b.Bytes())), nil
	})
}

// base is the layer below the binary: users, certificates of authorities, time zones, and /data.
func base(at time.Time) (v1.Layer, error) {
	f := newFiles(at)
	zones, err := zoneinfo()
	if err != nil {
		return nil, err
	}
	for _, each := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/:/sbin/nologin\n" +
			"nonroot:x:65532:65532:mcp-authd:/data:/sbin/nologin\n")},
		{"etc/group", 0o644, 0, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/mcp-authd/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots()},
		{"tmp/", 0o1777, 0, nil},
		{"data/", 0o700, nobody, nil},
	} {
		if err := f.put(each.name, each.mode, each.owner, each.content); err != nil {
			return nil, err
		}
	}
	names := make([]string, 0, len(zones))
	for name := range zones {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := f.put("usr/share/zoneinfo/"+name, 0o644, 0, zones[name]); err != nil {
			return nil, err
		}
	}
	return f.layer()
}

// roots returns the authorities that Mozilla trusts without a reservation: a certificate file cannot state
// reservations.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // into memory: it cannot fail
		}
	}
	return b.Bytes()
}

// zoneinfo are the time zones that Go comes with.
func zoneinfo() (map[string][]byte, error) {
	z, err := zip.OpenReader(filepath.Join(goroot(), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out := map[string][]byte{}
	for _, file := range z.File {
		if file.FileInfo().IsDir() {
			continue
		}
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		out[file.Name], err = io.ReadAll(io.LimitReader(r, 1<<20))
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// goroot returns the GOROOT of the go command, which sets it for programs that it runs.
func goroot() string {
	if dir := os.Getenv("GOROOT"); dir != "" {
		return dir
	}
	return runtime.GOROOT()
}
