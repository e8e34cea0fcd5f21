package clusters

import "context"

type urgentKey struct{}

// Urgent marks requests for which an ordinal may be down the longer they take. Where several plans
// share a limit on requests, these are sent before all others (orchestrator/fleet).
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent says whether requests of a context are marked so.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }
