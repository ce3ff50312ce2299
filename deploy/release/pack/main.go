// Command pack makes the parts of a release that goreleaser does not: the OCI image, the Helm charts, and
// lists of contents (SBOM). Each run makes the same bytes.
//
//	pack image DIST SECONDS              the image of DIST's binaries for Linux, beside them
//	pack charts DIST SECONDS HELM DIR... the charts in directories, packed by the program HELM
//	pack sbom FROM TO SECONDS            an SPDX document with the time SECONDS, and a name of its contents
//	pack check LAYOUT ARCH BINARY        is the image sound? Writes its binary for an architecture to a file
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "image":
		at, err := instant(args[2])
		if err != nil {
			return err
		}
		return image(args[1], at)
	case len(args) > 4 && args[0] == "charts":
		at, err := instant(args[2])
		if err != nil {
			return err
		}
		return charts(args[1], args[3], at, args[4:])
	case len(args) == 4 && args[0] == "sbom":
		at, err := instant(args[3])
		if err != nil {
			return err
		}
		return sbom(args[1], args[2], at)
	case len(args) == 4 && args[0] == "check":
		return check(args[1], args[2], args[3])
	}
	return errors.New("image DIST SECONDS, charts DIST SECONDS HELM DIR..., sbom FROM TO SECONDS, " +
		"or check LAYOUT ARCH BINARY")
}

// instant is a time in seconds since 1970.
func instant(text string) (time.Time, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}
