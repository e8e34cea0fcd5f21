// Command etcdclient is a client of an etcd cluster that is being moved. It writes and reads
// without pause and keeps every call with its times. All the time it also looks up the members by
// all their names and checks which member responds.
//
//	etcdclient -endpoints a:2379,b:2379 [-workers 4] -names etcd-0.x,etcd-0.y,...
//
//	GET  /history   every call, once POST /stop has ended them
//	GET  /state     the state of the client
//	POST /stop      end the calls, read back everything that was acknowledged
//	POST /rename    ?suffix=S&port=P: peer addresses become http://MEMBER.S:P
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
)

type client struct {
	history.Recorder
	etcd  *clientv3.Client
	calls sync.WaitGroup
	end   context.CancelFunc // ends the calls
}

func main() {
	endpoints := flag.String("endpoints", "", "the members' client addresses")
	names := flag.String("names", "", "the members' host names; the part before the first dot is the member's name")
	workers := flag.Int("workers", 0, "how many callers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*endpoints, ","), strings.Split(*names, ","), *workers); err != nil {
		fmt.Fprintln(os.Stderr, "etcdclient: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, endpoints, names []string, workers int) error {
	etcd, err := connect(endpoints...)
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }() // no request is in flight any more
	c := &client{etcd: etcd}
	c.Look(names...)
	for _, n := range names {
		go c.follow(ctx, n)
	}
	calling, end := context.WithCancel(ctx)
	c.end = end
	for w := range workers {
		c.calls.Go(func() { c.work(calling, w) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", c.ServeState)
	mux.HandleFunc("GET /history", c.ServeHistory)
	mux.HandleFunc("POST /stop", c.stop)
	mux.HandleFunc("POST /rename", c.rename)
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

func connect(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(),
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
		// A member that is back must be found soon. Otherwise the client itself causes the measured
		// gap.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond}, MinConnectTimeout: time.Second,
		})},
	})
}

// work calls without pause. Every second write is to a key that is never written again and is read
// back at the end. The other writes are to registers that all workers share. There is a new
// register every second, so that the history splits into parts that can be checked. Two of three
// calls are reads.
func (c *client) work(ctx context.Context, worker int) {
	for n := 0; ctx.Err() == nil; n++ {
		call := history.Call{Worker: worker, Key: fmt.Sprintf("register/%d", time.Now().Unix()), Kind: history.Read}
		switch n % 6 {
		case 0:
			call.Kind, call.Value = history.Write, fmt.Sprintf("%d-%d", worker, n)
		case 3:
			call.Kind, call.Key, call.Value = history.Write, fmt.Sprintf("%s%d/%d", history.LogPrefix, worker, n), "x"
		}
		c.do(ctx, call)
	}
}

func (c *client) do(ctx context.Context, call history.Call) {
	// The end of the calls must not cancel a call: a cancelled call is not known to have failed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	call.Begun = time.Now().UnixNano()
	var err error
	switch call.Kind {
	case history.Write:
		_, err = c.etcd.Put(ctx, call.Key, call.Value)
	case history.Read:
		var r *clientv3.GetResponse
		if r, err = c.etcd.Get(ctx, call.Key); err == nil && len(r.Kvs) > 0 {
			call.Value = string(r.Kvs[0].Value)
		}
	}
	c.Called(call, err)
}

// stop ends the calls and counts the acknowledged writes and those of them that are missing.
func (c *client) stop(w http.ResponseWriter, r *http.Request) {
	c.end()
	c.calls.Wait()
	there, err := c.etcd.Get(r.Context(), history.LogPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	keys := map[string]bool{}
	for _, kv := range there.Kvs {
		keys[string(kv.Key)] = true
	}
	c.Compare(keys)
	c.ServeState(w, r)
}

// follow repeatedly looks up one name and checks which member responds there.
func (c *client) follow(ctx context.Context, name string) {
	for tick := time.NewTicker(250 * time.Millisecond); ; {
		began := time.Now()
		err := c.ask(ctx, name)
		c.Looked(name, began, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *client) ask(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	if len(addresses) > 1 {
		return fmt.Errorf("%w: %s has the addresses %v", history.ErrWrong, name, addresses)
	}
	etcd, err := connect(net.JoinHostPort(addresses[0], "2379"))
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }() // no request is in flight any more
	members, err := etcd.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return err
	}
	want, _, _ := strings.Cut(name, ".")
	for _, m := range members.Members {
		if m.ID == members.Header.MemberId && m.Name != want {
			return fmt.Errorf("%w: %s at %s reports ordinal %q", history.ErrWrong, name, addresses[0], m.Name)
		}
	}
	return nil
}

// rename gives every member its new peer address, one after the other, as an operator does before
// the old names are removed.
func (c *client) rename(w http.ResponseWriter, r *http.Request) {
	members, err := c.etcd.MemberList(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	done := map[string][]string{}
	for _, m := range members.Members {
		address := []string{fmt.Sprintf("http://%s.%s:%s", m.Name, r.URL.Query().Get("suffix"), r.URL.Query().Get("port"))}
		if _, err := c.etcd.MemberUpdate(r.Context(), m.ID, address); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		done[m.Name] = address
	}
	fmt.Fprintln(w, slices.Sorted(maps.Keys(done)), done)
}
