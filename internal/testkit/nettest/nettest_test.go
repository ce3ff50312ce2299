package nettest

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	given := map[string]bool{}
	for range each / 2 { // other programs may use some of the ports
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Errorf("%s was given out twice", address)
		}
		given[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("it cannot be listened at: %v", err)
		}
		defer l.Close()
	}
}

func TestProcessesShareNoBlock(t *testing.T) {
	mine, err := claim()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.guard.Close()
	theirs, err := claim()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.guard.Close()
	if mine.first == theirs.first {
		t.Errorf("both have the ports from %d", mine.first)
	}
}
