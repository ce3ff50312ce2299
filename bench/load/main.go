// Load drives a running authorization server over HTTP as its clients do, and reports operations
// per second and latency for each kind of work. It needs only an issuer on loopback and a user: it
// discovers, registers and signs in through the forms.
//
//	go run ./bench/load -issuer http://127.0.0.1:8414 -user demo -password ... -c 32 -t 5s
//
// Client and server share the machine, so compare figures only within one run.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/bench/internal/client"
)

type options struct {
	issuer, user, password, clientID, clientSecret string
	workers                                        int
	duration                                       time.Duration
	only                                           string
	asJSON                                         bool
}

func main() {
	var o options
	flag.StringVar(&o.issuer, "issuer", "http://127.0.0.1:8414", "issuer on loopback")
	flag.StringVar(&o.user, "user", "demo", "username")
	flag.StringVar(&o.password, "password", "", "password")
	flag.StringVar(&o.clientID, "client-id", "",
		"confidential client for client_credentials and introspect (made with: mcp-authd client add)")
	flag.StringVar(&o.clientSecret, "client-secret", "", "its secret")
	flag.IntVar(&o.workers, "c", 32, "concurrent workers")
	flag.DurationVar(&o.duration, "t", 5*time.Second, "time for each scenario, a minute at most")
	flag.StringVar(&o.only, "only", "", "comma-separated scenarios; all when empty")
	flag.BoolVar(&o.asJSON, "json", false, "one JSON object a line")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	o.workers, o.duration = min(max(o.workers, 1), 256), min(o.duration, time.Minute)
	c, err := client.New(client.Config{
		Issuer:      o.issuer,
		Connections: o.workers,
		ID:          o.clientID,
		Secret:      o.clientSecret,
	})
	if err != nil {
		return err
	}
	for _, s := range scenarios(c, o) {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.name) {
			continue
		}
		report(measure(s, o), o.asJSON)
	}
	return nil
}

type result struct {
	Name   string  `json:"scenario"`
	Ops    int     `json:"ops"`
	Errors int     `json:"errors"`
	PerSec float64 `json:"ops_per_second"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	First  string  `json:"first_error,omitempty"`
}

// measure runs a scenario with all workers in a closed loop: each sends its next request after the
// last response.
func measure(s scenario, o options) result {
	ctx, cancel := context.WithTimeout(context.Background(), o.duration+time.Minute)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	r := result{Name: s.name}
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		r.Errors++
		if r.First == "" {
			r.First = err.Error()
		}
	}
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(o.workers)
	for range o.workers {
		done.Go(func() {
			op, err := s.prepare()
			ready.Done()
			if err != nil {
				fail(err)
				return
			}
			<-start
			var own []time.Duration
			for end := time.Now().Add(o.duration); time.Now().Before(end) && ctx.Err() == nil; {
				began := time.Now()
				if err := op(); err != nil {
					fail(err)
					if r.Errors > 1000 {
						return
					}
					continue
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		})
	}
	ready.Wait()
	began := time.Now()
	close(start)
	done.Wait()
	slices.Sort(all)
	r.Ops, r.PerSec = len(all), float64(len(all))/time.Since(began).Seconds()
	if n := len(all); n > 0 {
		r.P50, r.P99 = ms(all[n/2]), ms(all[min(n-1, n*99/100)])
	}
	return r
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func report(r result, asJSON bool) {
	if asJSON {
		json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	fmt.Printf("%-20s %9.0f ops/s   p50 %7.2f ms   p99 %7.2f ms   errors %d %s\n", r.Name, r.PerSec, r.P50, r.P99,
		r.Errors, r.First)
}
