package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const leftTime = time.Minute

// storeError is an error of the store, so the other files would fail the same way.
type storeError struct{ error }

// errInUse means that the writer of a spool is still running.
var errInUse = errors.New("auditlog: the writer of the file lives")

// takeLeft appends the entries in the spools of killed processes, and deletes these files. If
// replicas share a directory, each file is taken by one of them.
func (w *Writer) takeLeft(ctx context.Context) {
	if w.o.Dir == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(w.o.Dir, "awr_*"+spoolSuffix))
	sums, _ := filepath.Glob(filepath.Join(w.o.Dir, "awr_*"+sumsSuffix))
	files = append(files, sums...)
	for _, file := range files {
		if ctx.Err() != nil {
			return
		}
		n, err := w.takeSpool(ctx, file)
		var failed storeError
		switch {
		case errors.As(err, &failed):
			w.mu.Lock()
			w.warn("files of entries of the audit log wait: the store does not take them", "files", len(files),
				"error", err)
			w.mu.Unlock()
			return
		case errors.Is(err, errInUse), errors.Is(err, os.ErrNotExist):
		case err != nil:
			w.o.Log.ErrorContext(ctx, "entries of the audit log that a server has left in a file are not taken",
				"file", file, "error", err)
		case n > 0:
			w.o.Log.InfoContext(ctx, "entries of the audit log are taken that a server has left in a file",
				"file", file, "entries", n)
		}
		if !w.flush(ctx) { // waiting entries are not held up by the files
			return
		}
	}
	w.removeHalfMade()
}

// takeSpool appends the entries of one file that the log lacks.
func (w *Writer) takeSpool(ctx context.Context, path string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, leftTime)
	defer cancel()
	f, err := openLeft(path, w.o.Now())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all, err := io.ReadAll(io.LimitReader(f, maxSpool+1))
	if err == nil && len(all) > maxSpool {
		err = errors.New("it is too long")
	}
	if err != nil {
		return 0, err
	}
	suffix, parse := spoolSuffix, parseSpool
	if filepath.Ext(path) == sumsSuffix {
		suffix, parse = sumsSuffix, parseSums
	}
	entries, broken := parse(all)
	id := strings.TrimSuffix(filepath.Base(path), suffix)
	head, err := w.o.Store.AuditHead(ctx, id)
	if err != nil {
		return 0, storeError{err}
	}
	a := appender{store: w.o.Store, now: w.o.Now, id: id, mark: head.Mark, open: w.o.MAC}
	for len(entries) > 0 {
		if entries[0].number < a.mark {
			entries = entries[1:]
			continue
		}
		batch := entries[:min(len(entries), maxBatch)]
		if err := a.append(ctx, batch); err != nil {
			return n, storeError{err}
		}
		n += len(batch)
	}
	if broken > 0 {
		w.o.Log.ErrorContext(ctx, "lines cannot be read in a file of entries of the audit log: they are lost",
			"file", path, "lines", broken)
	}
	return n, os.Remove(path)
}

// openLeft opens and locks a file, if it belongs to this account and its writer has ended.
func openLeft(path string, now time.Time) (*os.File, error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	if err := checkLeft(f, path, now); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkLeft(f *os.File, path string, now time.Time) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || !ownedByUs(info) || info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("it is not a file of this account alone: if it is to be trusted, have it belong to the "+
			"account of the server (chown) with mode 600; else remove it; mode %s", info.Mode())
	case now.Sub(info.ModTime()) > spoolAge:
		return errors.New("it is too old to tell which of its entries the log has: remove it")
	}
	if err := lockFile(f); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errInUse
		}
		return err
	}
	// Before the lock, another replica may have taken the file, or its writer may have replaced it.
	if there, err := os.Lstat(path); err != nil || !os.SameFile(there, info) {
		return errInUse
	}
	return nil
}

// parseSpool reads entries, and counts unreadable lines. It ignores a partial last line, because
// the writer was killed before anything depended on it.
func parseSpool(all []byte) (entries []numbered, broken int) {
	whole := all[:bytes.LastIndexByte(all, '\n')+1]
	for line := range bytes.Lines(whole) {
		e, err := parseSpoolLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil || len(entries) > 0 && e.number <= entries[len(entries)-1].number {
			broken++
			continue
		}
		entries = append(entries, e)
	}
	return entries, broken
}

// removeHalfMade deletes unfinished files older than an hour.
func (w *Writer) removeHalfMade() {
	files, _ := filepath.Glob(filepath.Join(w.o.Dir, halfMade+"*"))
	for _, file := range files {
		if info, err := os.Lstat(file); err == nil && w.o.Now().Sub(info.ModTime()) > time.Hour {
			_ = os.Remove(file) // another replica may be faster
		}
	}
}
