package clusters

import "context"

type urgentKey struct{}

// Urgent marks requests that keep an ordinal down for as long as they take. Where several plans share a
// rate limit, these requests are sent before all others (orchestrator/fleet).
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent reports whether requests of a context are marked by Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }
