// Command writer is a client of a replicated application that is being moved. It writes all the
// time, each key once, and keeps every call with its times. In the end it reads back all that the
// application has acknowledged.
//
//	writer postgres   the servers and the password as psql takes them: PGHOST, PGUSER, PGPASSWORD
//	writer nats       the servers in NATS_URL
//	writer zookeeper  the servers in ZOOKEEPER
//
//	GET  /history   every call, once POST /stop has ended them
//	GET  /state     the state of the client
//	POST /stop      end the calls, read back everything that was acknowledged
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
)

const (
	workers = 2
	pace    = 20 * time.Millisecond // between two writes of a worker
	patient = 2 * time.Second       // how long a write may take
)

// store is the application, as one worker sees it.
type store interface {
	// write returns without an error only if the application has acknowledged the key.
	write(ctx context.Context, key string) error
	// keys returns everything that was ever written.
	keys(ctx context.Context) (map[string]bool, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "writer: "+err.Error())
		os.Exit(1)
	}
}

func open(args []string) (store, error) {
	if len(args) == 1 {
		switch args[0] {
		case "postgres":
			return &postgres{}, nil
		case "nats":
			return &stream{}, nil
		case "zookeeper":
			return &tree{}, nil
		}
	}
	return nil, fmt.Errorf("expected postgres, nats or zookeeper, and not %q", args)
}

type client struct {
	history.Recorder
	calls sync.WaitGroup
	end   context.CancelFunc // ends the calls
}

func run(ctx context.Context, args []string) error {
	reader, err := open(args)
	if err != nil {
		return err
	}
	c := &client{}
	calling, end := context.WithCancel(ctx)
	c.end = end
	for w := range workers {
		s, err := open(args) // a connection for each
		if err != nil {
			return err
		}
		c.calls.Go(func() { c.work(calling, s, w) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", c.ServeState)
	mux.HandleFunc("GET /history", c.ServeHistory)
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		c.end()
		c.calls.Wait()
		there, err := readBack(r.Context(), reader)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		c.Compare(there)
		c.ServeState(w, r)
	})
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readBack reads what is stored, and begins again after an error: when the last member has moved, its application may
// still be electing a leader.
func readBack(ctx context.Context, s store) (there map[string]bool, err error) {
	late, again := time.After(time.Minute), time.NewTicker(time.Second)
	defer again.Stop()
	for {
		if there, err = s.keys(ctx); err == nil {
			return there, nil
		}
		select {
		case <-again.C:
		case <-late:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (c *client) work(ctx context.Context, s store, worker int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		call := history.Call{Worker: worker, Kind: history.Write, Begun: time.Now().UnixNano()}
		// Two clients of one application must not write the same keys.
		call.Key = fmt.Sprintf("%s%s/%d/%d", history.LogPrefix, os.Getenv("POD_UID"), worker, n)
		// The end of the calls must not cancel a call: a cancelled call is not known to have failed.
		each, cancel := context.WithTimeout(context.WithoutCancel(ctx), patient)
		err := s.write(each, call.Key)
		cancel()
		c.Called(call, err)
	}
}
