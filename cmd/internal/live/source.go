package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

// Source is where the status of a plan is read.
type Source struct {
	*reach.Target
	Now func() time.Time
	// Version is that of this program.
	Version string
}

// Status reads the state of the plan, as far as it is visible.
func (s Source) Status(ctx context.Context) (*engine.View, error) {
	v, err := engine.Status(ctx, s.Plan, s.Store, s.On, s.Lost, s.Now, s.Command)
	if err != nil || !v.Unattended {
		return v, s.deleted(ctx, err)
	}
	var none records.ErrNoOrchestrator
	switch _, err := records.Alive(ctx, s.Home.Client, s.Home.Watches, s.Home.Namespace, s.Version, s.Plan.Requires); {
	case err == nil:
	case errors.As(err, &none):
		v.Orchestrator, v.Next = err.Error(), "start an orchestrator there, which resumes it: `"+s.Home.Kubectl(s.Home.Namespace)+" get pods` says why none is ready"
	case errors.As(err, new(records.ErrOtherVersion)):
		v.Orchestrator, v.Next = err.Error(), ""
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		v.Orchestrator = "the Leases of the orchestrators cannot be read: " + err.Error()
	}
	return v, nil
}

// deleted tells a record that has been deleted as a whole, as happens after the end, from a journal that is lost.
func (s Source) deleted(ctx context.Context, err error) error {
	if !errors.As(err, new(records.ErrNoJournal)) {
		return err
	}
	var none records.ErrNoPlan
	if _, stored := s.Store.Plan(ctx); errors.As(stored, &none) {
		return errDeleted{none}
	}
	return err
}

type errDeleted struct{ records.ErrNoPlan }

func (e errDeleted) Error() string {
	return fmt.Sprintf("the record of plan %s in namespace %s, plan and journal, has been deleted meanwhile, as happens after the end of a plan", e.Name.Name, e.Name.Namespace)
}

func (e errDeleted) Unwrap() error { return e.ErrNoPlan }

// Feed returns the moments of the plan. It reads one whenever something changes, until ctx ends.
func (s Source) Feed(ctx context.Context, leave <-chan struct{}, complain func(error)) Feed {
	wake := clusters.NewChangeSignal()
	wake.Watch(ctx, s.Plan, s.Watches)
	wake.WatchRecords(ctx, s.Home.Watches, s.Home.Namespace)
	read := func(ctx context.Context) (st Status, err error) {
		if st.View, err = s.Status(ctx); err != nil {
			return st, err
		}
		st.Journal, err = s.Store.JournalOrNew(ctx, s.Plan)
		st.At = s.Now()
		return st, err
	}
	return Feed{Read: read, Poll: Poll{Wake: wake.C(), Leave: leave, Complain: complain}}
}

// Beside draws the plan beside a run of this process, if the show has a terminal. The function that it returns draws
// the last frame.
func (s Source) Beside(ctx context.Context, show *Show) (end func()) {
	if show.Mode != Screen {
		return func() {}
	}
	drawing, cancel := context.WithCancel(ctx)
	f, over := s.Feed(drawing, nil, show.Complain), make(chan struct{})
	go func() {
		defer close(over)
		_ = f.Follow(drawing, func(st Status) bool { // the run reports what is wrong
			show.Report(show.fromInside(st))
			return false
		})
	}()
	return func() {
		cancel()
		<-over
		if st, err := f.Read(ctx); err == nil {
			show.Report(st)
		}
	}
}
