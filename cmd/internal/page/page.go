// Package page serves the page of all plans to a browser on the machine of the user. Watches fill it.
package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/dashboard"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Command returns the command that serves the page. home is where the plans are.
func Command(home *reach.Flags, streams genericiooptions.IOStreams, now func() time.Time) *cobra.Command {
	var all bool
	o := Options{Now: now, Out: streams.Out, ErrOut: streams.ErrOut}
	cmd := &cobra.Command{
		Use: "dashboard", Short: "Serve a page of all plans to a browser on this machine", Args: program.NoArgument,
		Long: `Serve a page of all plans of a namespace to a browser on this machine, until Ctrl-C.

The page updates itself and changes nothing. The printed address contains a token, which is
new every time: a user who has it, and can reach this machine at 127.0.0.1, sees the page.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := home.Home()
			if err != nil {
				return err
			}
			if o.Namespace = at.Namespace; all {
				o.Namespace = ""
			}
			return Serve(cmd.Context(), at, o)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the plans of all namespaces")
	cmd.Flags().Uint16Var(&o.Port, "port", 0, "the port on 127.0.0.1, or 0 for any free one")
	return cmd
}

// Options say what is shown, and where.
type Options struct {
	// Namespace is that of the plans, or "" for all.
	Namespace string
	// Port is the port on 127.0.0.1, or 0 for any free one.
	Port uint16
	Now  func() time.Time
	// Out gets the address, and ErrOut what happens.
	Out, ErrOut io.Writer
}

// Serve serves the page until ctx ends.
func Serve(ctx context.Context, home *reach.End, o Options) error {
	changes := make(chan struct{}, 1)
	seen, err := home.Cached(ctx, o.Namespace, func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}, func(err error) {
		if ctx.Err() == nil {
			fmt.Fprintln(o.ErrOut, "a watch has failed, and is tried again: "+plans.Line(err.Error()))
		}
	})
	if err != nil {
		return err
	}
	b, shown := dashboard.NewBoard(), &shownPlans{seen: seen, namespace: o.Namespace, context: home.Context, now: o.Now}
	rows, err := shown.rows(ctx)
	if err != nil {
		return err
	}
	b.Replace(rows)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.Port))))
	if err != nil {
		return fmt.Errorf("the page cannot be served: %w: choose another --port, or leave it", err)
	}
	go o.follow(ctx, b, shown, changes)
	return o.serve(ctx, b, l)
}

// follow brings the board up to date after changes, at most twice a second.
func (o Options) follow(ctx context.Context, b *dashboard.Board, shown *shownPlans, changes <-chan struct{}) {
	pause := time.NewTicker(time.Second / 2)
	defer pause.Stop()
	for ctx.Err() == nil {
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
		rows, err := shown.rows(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintln(o.ErrOut, "the plans cannot be read: "+plans.Line(err.Error()))
		default:
			b.Replace(rows)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

// servePage serves the page on this machine until ctx ends.
func (o Options) serve(ctx context.Context, b *dashboard.Board, l net.Listener) error {
	token, accept := dashboard.NewToken()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	all := dashboard.Server{Board: b, Accept: accept, Done: ctx.Done(), Now: o.Now, Hosts: []string{"127.0.0.1:" + port, "localhost:" + port}}
	s := &http.Server{Handler: all.Handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		<-ctx.Done()
		_ = s.Close() // a page that is open says that it is not live any more
	}()
	fmt.Fprintf(o.Out, "http://127.0.0.1:%s/#%s\n", port, token)
	fmt.Fprintln(o.ErrOut, "open this address in a browser on this machine; Ctrl-C ends it, and moves go on")
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the page cannot be served: %w", err)
	}
	return nil
}
