package auditlog

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Export writes the log: checkpoints, hashes of removed entries, and entries, each with the reason
// if it is not proven.
func Export(ctx context.Context, store Store, standing Standing, write func(verify.Line) error) error {
	head, err := store.AuditHead(ctx, "")
	if err != nil {
		return err
	}
	err = eachCheckpoint(ctx, store, func(c storage.AuditCheckpoint) error {
		if c.Size > head.Size {
			return nil
		}
		return write(verify.Line{Checkpoint: string(c.Signed)})
	})
	if err != nil {
		return err
	}
	if err := exportRemoved(ctx, store, 0, head.First, write); err != nil {
		return err
	}
	for at := head.First; at < head.Size; {
		some, err := store.AuditEntries(ctx, storage.AuditQuery{From: at, Below: head.Size, Limit: page})
		if err != nil {
			return err
		}
		if len(some) == 0 || some[0].Index != at {
			// They may be removed meanwhile. The entry that announces it is at the current end.
			now, err := store.AuditHead(ctx, "")
			if err != nil {
				return err
			}
			if at < now.First && now.First <= now.Size {
				if err := exportRemoved(ctx, store, at, now.First, write); err != nil {
					return err
				}
				at, head = now.First, now
				continue
			}
		}
		if len(some) == 0 {
			return fmt.Errorf("entry %d is missing, run: mcp-authd audit verify", at)
		}
		for _, e := range some {
			line := verify.Line{Index: e.Index, Leaf: string(e.Leaf), Unproven: standing.Unproven(e)}
			if err := write(line); err != nil {
				return err
			}
		}
		at = some[len(some)-1].Index + 1
	}
	return nil
}

func exportRemoved(ctx context.Context, store Store, from, below int64, write func(verify.Line) error) error {
	read := readStored(ctx, store)
	for at := from; at < below; at++ {
		h, err := read.ReadHashes([]int64{tlog.StoredHashIndex(0, at)})
		if err != nil {
			return err
		}
		if err := write(verify.Line{Index: at, Hash: &h[0]}); err != nil {
			return err
		}
		if at%tileWidth == tileWidth-1 {
			clear(read.tiles)
		}
	}
	return nil
}

// eachCheckpoint calls f with each checkpoint in the store, by size.
func eachCheckpoint(ctx context.Context, store Store, f func(storage.AuditCheckpoint) error) error {
	for after := int64(0); ; {
		some, err := store.Checkpoints(ctx, after, page)
		if err != nil {
			return err
		}
		for _, c := range some {
			if err := f(c); err != nil {
				return err
			}
			after = c.Size
		}
		if len(some) < page {
			return nil
		}
	}
}
