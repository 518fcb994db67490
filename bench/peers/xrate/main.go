// main.go -- Go's golang.org/x/time/rate, measured as a peer of Weir.
//
//	peer.xrate.granted, .refused    lim.AllowN(t, 1): the time is supplied, and moves on by tick with each ask
//	peer.xrate.granted-own-clock    lim.Allow(): the limiter reads the clock itself
//
// CPU time of the process, median of five rounds; nothing here allocates, so the process is its one busy thread.
package main

import (
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

const (
	rounds = 5
	asks   = 5_000_000
	tick   = 100 * time.Nanosecond
)

func cpuNs() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fmt.Fprintln(os.Stderr, "xrate:", err)
		os.Exit(1)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// The limiters outlive the rounds, so the time goes on where the last round left it.
type subject struct {
	name    string
	granted int // expected of a round
	ask     func() int
	ns      []float64
}

// timed asks with the time supplied.  time.Now gives a time with a monotonic part, which is what callers have at hand.
func timed(lim *rate.Limiter) func() int {
	now := time.Now()
	return func() int {
		granted := 0
		t := now
		for i := 0; i < asks; i++ {
			t = t.Add(tick)
			if lim.AllowN(t, 1) {
				granted++
			}
		}
		now = t
		return granted
	}
}

func ownClock(lim *rate.Limiter) func() int {
	return func() int {
		granted := 0
		for i := 0; i < asks; i++ {
			if lim.Allow() {
				granted++
			}
		}
		return granted
	}
}

// The count proves that the path meant was the path measured, and keeps the work from being optimised away.
func (s *subject) round() {
	start := cpuNs()
	granted := s.ask()
	spent := cpuNs() - start
	if granted != s.granted {
		fmt.Fprintf(os.Stderr, "xrate: %s: not the answers this measures: %d granted\n", s.name, granted)
		os.Exit(1)
	}
	s.ns = append(s.ns, float64(spent)/asks)
}

func main() {
	mean := rate.NewLimiter(1e-6, 1)
	mean.Allow() // its burst

	subjects := []*subject{
		{name: "granted", granted: asks, ask: timed(rate.NewLimiter(1e12, 1000))},
		{name: "refused", granted: 0, ask: timed(mean)},
		// The burst covers asks that fall into one reading of the clock.
		{name: "granted-own-clock", granted: asks, ask: ownClock(rate.NewLimiter(1e12, 1000))},
	}
	for i := 0; i < rounds; i++ { // alternating, so that a noisy moment hits all
		for _, s := range subjects {
			s.round()
		}
	}
	for _, s := range subjects {
		sort.Float64s(s.ns)
		fmt.Printf("peer.xrate.%s\t%.2f\tns\n", s.name, s.ns[rounds/2])
	}
}
