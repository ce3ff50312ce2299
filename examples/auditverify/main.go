// Command auditverify checks what mcp-authd says about its audit log, and imports nothing of the
// server: a log that "mcp-authd audit export" has written, by the key that was kept of it.
//
//	auditverify -key auth.example.com/audit+f7a1c2d3+AQ... <audit.jsonl
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

func main() {
	key := flag.String("key", "", "key of the log, as audit checkpoint --key prints it")
	flag.Parse()
	log := verify.NewLog(*key)
	if err := log.Read(bufio.NewReader(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, "not what was written:", err)
		os.Exit(1)
	}
	fmt.Printf("%d entries, %d of them signed\n", log.Size(), log.Confirmed())
}
