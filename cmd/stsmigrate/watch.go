package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/stsmigrate/stsmigrate/cmd/internal/live"
	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// view begins to show a plan. warning, if not nil, is asked before the user leaves the view, and leave ends the command,
// which then also goes on without its terminal. The function that it returns ends the view.
func (a *app) view(ctx context.Context, t *reach.Target, warning func() string, leave func()) (*live.Show, func(), error) {
	in, _ := a.In.(*os.File)
	out, _ := a.raw.(*os.File)
	mode, err := live.ModeOf(a.events, in, out, os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	s := &live.Show{Mode: mode, Plan: t.Plan, Out: a.stdout, Now: a.now}
	err = s.Open(live.Terminal{In: in, Out: out, Env: os.Getenv, Now: a.now}, live.Actions{
		Pause: func() error { return pause(ctx, t, a.now) }, Warning: warning, Leave: leave, Interrupt: a.signals.Raise,
	})
	if err != nil {
		return nil, nil, err
	}
	a.restore.Store(s)
	undo := program.Divert(s.Notices(), a.Out, a.ErrOut)
	return s, func() { s.Close(); undo() }, nil
}

// source returns where the status of a plan is read.
func (a *app) source(t *reach.Target) live.Source {
	return live.Source{Target: t, Now: a.now, Version: versionText()}
}

// watchStatus shows a plan until it rests, or until the user leaves.
func (a *app) watchStatus(ctx context.Context, t *reach.Target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.output != "" {
		show := a.show
		last, err := a.source(t).Feed(ctx, nil, a.complain).Documents(ctx, func(v *engine.View) error {
			if a.output == "json" {
				return json.NewEncoder(a.Out).Encode(v) // one line
			}
			defer func() { show = a.further }()
			return show(statusOf(v))
		})
		if err != nil {
			return err
		}
		return stateCode(last)
	}
	left := make(chan struct{})
	s, end, err := a.view(ctx, t, nil, sync.OnceFunc(func() { close(left) }))
	if err != nil {
		return err
	}
	var last *engine.View
	err = a.source(t).Feed(ctx, left, s.Complain).Follow(ctx, func(st live.Status) bool {
		s.Report(st)
		last = st.View
		return last.Rests()
	})
	end()
	switch {
	case errors.Is(err, live.ErrLeft):
		return nil
	case err != nil:
		return err
	case last.State == plans.StateBlocked:
		fmt.Fprintf(a.ErrOut, "blocked: %s\nNext: %s\n", reasons.Tagged(last.ReasonID, last.Reason), last.Next)
	}
	return stateCode(last)
}

// complain prints an error of a read that will be repeated.
func (a *app) complain(err error) {
	fmt.Fprintf(a.ErrOut, "will try again: %s\n", oneLine(err.Error()))
}
