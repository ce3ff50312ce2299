// Command auditverify verifies mcp-authd's statements about its audit log without importing
// anything of the server. It checks a log that "mcp-authd audit export" has written against a key
// that you have kept.
//
//	auditverify -key auth.example.com/audit+f7a1c2d3+AQ... <audit.jsonl
//	auditverify -key auth.example.com/audit+f7a1c2d3+AQ... -proof <proof.json
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

func main() {
	key := flag.String("key", "", "key of the log, as audit checkpoint --key prints it")
	one := flag.Bool("proof", false, "read a proof, as audit prove --json prints it")
	flag.Parse()
	if *one {
		proof(*key)
		return
	}
	log := verify.NewLog(*key)
	if err := log.Read(bufio.NewReader(os.Stdin)); err != nil {
		fail(err)
	}
	fmt.Printf("%d entries, %d of them signed\n", log.Size(), log.Confirmed())
	fmt.Println("tree and checkpoints were checked; the MACs of writers need the master key: mcp-authd audit verify")
}

// proof prints the entries of a proof, if the key has signed the log that contains them.
func proof(key string) {
	var p verify.Proof
	err := json.NewDecoder(os.Stdin).Decode(&p)
	if err != nil {
		fail(err)
	}
	entries, err := p.Open(key)
	if err != nil {
		fail(err)
	}
	switch {
	case p.Removed:
		fmt.Println("NO APPROVAL: the server says that it was removed from the log by its age")
	case p.Unapproved:
		fmt.Println("NO APPROVAL: the server says that no person approved the grant on a page")
	}
	for i, e := range entries {
		fmt.Println(p.Entries[i].Index, e.At, e.Event, e.Fields)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "not what was written:", err)
	os.Exit(1)
}
