package clusters

import "context"

// Warnings passes the warnings of an API server to the request that listens for them, and drops all
// others. It is the WarningHandlerWithContext of the clients that the checks use. With another handler,
// warn-level Pod Security is not reported.
type Warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if heard, ok := ctx.Value(warningsKey{}).(*[]string); ok {
		*heard = append(*heard, text)
	}
}

// Hearing returns a context for one request at a time, and where its warnings are collected.
func Hearing(ctx context.Context) (context.Context, *[]string) {
	heard := &[]string{}
	return context.WithValue(ctx, warningsKey{}, heard), heard
}
