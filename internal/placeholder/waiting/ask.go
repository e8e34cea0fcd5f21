package waiting

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// How long one try may take. The kubelet tries again.
const (
	lookupTimeout = 5 * time.Second
	openTimeout   = 3 * time.Second
	pause         = time.Second
	// maxAddresses is how many addresses of a host are tried: each may take as long as none answers.
	maxAddresses = 8
)

// Asker opens connections to targets, and closes them at once. Nothing is sent.
type Asker struct {
	Lookup func(ctx context.Context, host string) ([]string, error)
	Open   func(ctx context.Context, address string) error
	// Pause waits between two tries; false ends them.
	Pause func(ctx context.Context) bool
	Now   func() time.Time
}

// Real asks the DNS and the network that the program has.
func Real(now func() time.Time) Asker {
	dialer := net.Dialer{Timeout: openTimeout}
	return Asker{
		Now: now,
		Lookup: func(ctx context.Context, host string) ([]string, error) {
			ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
			defer cancel()
			return net.DefaultResolver.LookupHost(ctx, host)
		},
		Open: func(ctx context.Context, address string) error {
			c, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				err = c.Close()
			}
			return err
		},
		Pause: func(ctx context.Context) bool {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(pause):
				return true
			}
		},
	}
}

// Ask asks each target until it is reached, or until the context or the pauses end. Each is tried once at least.
func (a Asker) Ask(ctx context.Context, targets []string) Answers {
	out := Answers{Asked: len(targets), Each: make([]Answer, len(targets))}
	var all sync.WaitGroup
	for k, target := range targets {
		all.Go(func() {
			for {
				out.Each[k] = a.one(context.WithoutCancel(ctx), target)
				if out.Each[k].Error == "" || !a.Pause(ctx) {
					return
				}
			}
		})
	}
	all.Wait()
	for _, one := range out.Each {
		if one.Error == "" {
			out.Reached++
		}
	}
	slices.SortStableFunc(out.Each, func(x, y Answer) int { return cmp.Compare(rank(x), rank(y)) })
	return out
}

// rank puts those first that were not reached.
func rank(a Answer) int {
	if a.Error != "" {
		return 0
	}
	return 1
}

// one tries a target. Its host may have several addresses: it is reached if one of them opens.
func (a Asker) one(ctx context.Context, target string) (out Answer) {
	began := a.Now()
	out.Target = target
	defer func() { out.Milliseconds = a.Now().Sub(began).Milliseconds() }()
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		out.Error = short(err)
		return out
	}
	addresses, err := a.Lookup(ctx, host)
	if err != nil {
		out.Error = short(err)
		return out
	}
	for _, at := range addresses {
		if len(out.Addresses) < 3 {
			out.Addresses = append(out.Addresses, at)
		}
	}
	out.Error = "the DNS has no address"
	for _, at := range addresses[:min(len(addresses), maxAddresses)] {
		if err = a.Open(ctx, net.JoinHostPort(at, port)); err == nil {
			out.Error = ""
			return out
		}
		out.Error = short(err)
	}
	return out
}

func short(err error) string {
	words := err.Error()
	return words[:min(len(words), maxWords)]
}
