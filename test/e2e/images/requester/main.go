// Command requester is a client that never pauses, and the proxy through which another one asks.
//
//	requester URL...               ask each URL all the time, with a new connection for each request
//	requester proxy LISTEN TARGET  pass connections on, as the proxy behind an Ingress does
//
//	GET /state    how many requests there were, and how many failed
//	GET /history  every request; the worker is the number of its URL
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
)

const (
	pace    = 20 * time.Millisecond // between two requests for a URL
	patient = 2 * time.Second       // how long an answer may take
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	serve := func() error { return ask(ctx, args) }
	if len(args) == 3 && args[0] == "proxy" {
		serve = func() error { return pass(ctx, args[1], args[2]) }
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "requester: "+err.Error())
		os.Exit(1)
	}
}

func ask(ctx context.Context, urls []string) error {
	r := &history.Recorder{}
	for k, url := range urls {
		go func() {
			client := &http.Client{Timeout: patient, Transport: &http.Transport{DisableKeepAlives: true}}
			for tick := time.NewTicker(pace); ; {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				call := history.Call{Worker: k, Kind: history.Read, Begun: time.Now().UnixNano()}
				r.Called(call, get(ctx, client, url))
			}
		}()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", r.ServeState)
	mux.HandleFunc("GET /history", r.ServeHistory)
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

func get(ctx context.Context, c *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := c.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

func pass(ctx context.Context, listen, target string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		_ = l.Close()
	}()
	for {
		from, err := l.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		default:
			return err
		}
		go func() {
			defer func() { _ = from.Close() }()
			to, err := net.DialTimeout("tcp", target, patient)
			if err != nil {
				return // the client sees a connection that is closed
			}
			defer func() { _ = to.Close() }()
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(to, from); _ = to.(*net.TCPConn).CloseWrite() })
			both.Go(func() { _, _ = io.Copy(from, to); _ = from.(*net.TCPConn).CloseWrite() })
			both.Wait()
		}()
	}
}
