package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// Bed is two clusters with one storage behind both.
type Bed struct {
	East, West *Cluster
	Backend    *Backend

	cancel  context.CancelFunc
	served  chan struct{} // closed when the provisioners have ended
	failure error         // of the provisioners; read it after served is closed
}

// StartBed starts the clusters east and west, installs the storage in both and serves it from this
// process. The work folders and the backend's file (backend.jsonl) are under dir, which is created
// if it does not exist. Stop removes everything there except the file. If dir is empty, the folders
// are temporary and Stop removes all of them. Options.Dir and Options.Detached are ignored.
func StartBed(ctx context.Context, dir string, o Options) (*Bed, error) {
	o.Dir, o.Detached = dir, false
	east, west, err := StartPair(ctx, "east", "west", o)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = east.Dir
	}
	backend, err := OpenBackend(filepath.Join(dir, "backend.jsonl"))
	if err != nil {
		return nil, errors.Join(err, stopAll(ctx, east, west))
	}
	for _, c := range []*Cluster{east, west} {
		if err := InstallStorage(ctx, c.Config()); err != nil {
			return nil, errors.Join(err, stopAll(ctx, east, west))
		}
	}
	b := &Bed{East: east, West: west, Backend: backend, served: make(chan struct{})}
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.served)
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return Serve(ctx, backend, o.DetachDelay, east, west) })
		if o.StopByUID {
			g.Go(func() error { return EndPods(ctx, east, o.PodStop) })
			g.Go(func() error { return EndPods(ctx, west, o.PodStop) })
		}
		b.failure = g.Wait()
	}()
	return b, nil
}

// Serve runs the provisioners of the clusters until ctx ends. It then returns nil.
func Serve(ctx context.Context, b *Backend, detachDelay time.Duration, clusters ...*Cluster) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range clusters {
		p := Provisioner{Cluster: c.Name, Config: c.Config(), Backend: b, DetachDelay: detachDelay}
		g.Go(func() error { return p.Run(ctx) })
	}
	return g.Wait()
}

// Stop ends the provisioners and removes both clusters. A second call is no error.
func (b *Bed) Stop(ctx context.Context) error {
	b.cancel()
	<-b.served
	return errors.Join(b.failure, stopAll(ctx, b.East, b.West))
}

// stopAll stops clusters even if ctx has ended.
func stopAll(ctx context.Context, clusters ...*Cluster) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for _, c := range clusters {
		if c != nil {
			err = errors.Join(err, c.Stop(ctx))
		}
	}
	return err
}
