package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sourceImage is what templates name as the image where a release names its own: a chart of the source has
// no version.
const sourceImage, releaseImage = "ghcr.io/mcp-authd/mcp-authd:0.0.0", "ghcr.io/mcp-authd/mcp-authd:"

// charts packs the charts in directories with helm, at the version of the release, and adds the checksums
// of the packages to the list of checksums.
func charts(dist, helm string, at time.Time, dirs []string) error {
	var meta metadata
	if err := read(filepath.Join(dist, "metadata.json"), &meta); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := chart(dist, helm, dir, meta.Version, at); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// chart packs one.
func chart(dist, helm, dir, version string, at time.Time) error {
	temp, err := os.MkdirTemp("", "mcp-authd-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	source := filepath.Join(temp, filepath.Base(dir))
	if err := errors.Join(os.CopyFS(source, os.DirFS(dir)), nameImage(source, version)); err != nil {
		return err
	}
	cmd := exec.Command(helm, "package", source, "--version", version, "--app-version", version, "--destination", temp)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+temp, "HELM_CONFIG_HOME="+temp, "HELM_DATA_HOME="+temp)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("helm package: %w\n%s", err, out)
	}
	name := filepath.Base(dir) + "-" + version + ".tgz"
	if err := retime(filepath.Join(temp, name), filepath.Join(dist, name), at); err != nil {
		return err
	}
	return addSum(dist, name)
}

// nameImage has the templates of a chart name the image of a version.
func nameImage(dir, version string) error {
	files, err := filepath.Glob(filepath.Join(dir, "templates", "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(b), sourceImage, releaseImage+version)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// retime copies a helm package, and replaces the times of all files, and of the package, by one time. helm
// push sends the package's time to the registry as the creation time of the chart.
func retime(from, to string, at time.Time) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(), os.Chtimes(to, at, at)) }()
	again := gzip.NewWriter(out)
	again.Extra, again.Comment = packed.Extra, packed.Comment // helm recognizes its packages by them
	files := tar.NewWriter(again)
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(files.Close(), again.Close())
		}
		if err != nil {
			return err
		}
		h.ModTime = at
		if err := files.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(files, r); err != nil {
			return err
		}
	}
}
