// Footprint starts a program that was built for a release, and prints its cost: the time until the
// first response, idle memory, and memory during many concurrent sign-ins.
//
//	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /tmp/mcp-authd ./cmd/mcp-authd
//	go run ./bench/footprint -program /tmp/mcp-authd
//
// It runs on Linux, because it reads /proc. On a machine that also does other work, trust the
// processor time: the sum of all threads of the program until the first response.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

type options struct {
	program         string
	starts, signIns int
	rest            time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.program, "program", "mcp-authd", "the program")
	flag.IntVar(&o.starts, "n", 20, "starts, 1,000 at most")
	flag.IntVar(&o.signIns, "signins", 100, "sign-ins at once, 1,000 at most")
	flag.DurationVar(&o.rest, "rest", 10*time.Second, "how long the program rests before its memory is read")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	o.starts, o.signIns = min(max(o.starts, 1), 1000), min(max(o.signIns, 1), 1000)
	info, err := os.Stat(o.program)
	if err != nil {
		return err
	}
	fmt.Printf("program                  %6.1f MB\n", float64(info.Size())/1e6)
	dir, err := os.MkdirTemp("", "footprint")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := timeStarts(ctx, o, "new installation", func() (*installation, error) {
		return newInstallation(o.program, dir)
	}); err != nil {
		return err
	}
	in, err := newInstallation(o.program, dir)
	if err != nil {
		return err
	}
	if err := in.addPeople(ctx, o.signIns); err != nil {
		return err
	}
	if err := timeStarts(ctx, o, "first answer", func() (*installation, error) { return in, nil }); err != nil {
		return err
	}
	return measureMemory(ctx, o, in)
}

// timeStarts prints the minimum and the median of all starts.
func timeStarts(ctx context.Context, o options, name string, next func() (*installation, error)) error {
	var passed, used []time.Duration
	for range o.starts {
		in, err := next()
		if err != nil {
			return err
		}
		s, err := in.start(ctx)
		if err != nil {
			return err
		}
		passed, used = append(passed, s.passed), append(used, s.used)
		if err := s.stop(); err != nil {
			return err
		}
	}
	slices.Sort(passed)
	slices.Sort(used)
	fmt.Printf("%-24s %6.1f ms, median %.1f ms; processor time %.1f ms, median %.1f ms\n", name,
		ms(passed[0]), ms(passed[len(passed)/2]), ms(used[0]), ms(used[len(used)/2]))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func measureMemory(ctx context.Context, o options, in *installation) error {
	s, err := in.start(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	select {
	case <-time.After(o.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	idle, err := readMemory(s.pid())
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %s\n", "at rest after "+o.rest.String(), idle)
	if err := forgetPeak(s.pid()); err != nil {
		return err
	}
	took, err := in.signIn(o.signIns)
	if err != nil {
		return err
	}
	after, err := readMemory(s.pid())
	if err != nil {
		return err
	}
	fmt.Printf("%-24s %6.1f MB at its peak, %.1f s\n", fmt.Sprintf("%d sign-ins at once", o.signIns), after.peak,
		took.Seconds())
	return s.stop()
}
