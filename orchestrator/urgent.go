package orchestrator

import "context"

type urgentKey struct{}

// Urgent marks requests for which an ordinal may be down the longer they take. Where several plans
// share a limit on requests, these are sent before all others (orchestrator/fleet).
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent says whether requests of a context are marked so.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// hurry marks what is sent from the moment when the budgets are tight until they are open again.
// What comes before a wave, its checks above all, is not urgent: so no more waves begin than
// the limit on requests lets through without delay.
func (e *Engine) hurry(ctx context.Context) context.Context {
	if e.journal != nil && e.journal.Tight != nil {
		return Urgent(ctx)
	}
	return ctx
}
