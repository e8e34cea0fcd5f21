package clusters

import "context"

// Warnings hands the warnings of an API server to the request that asked for them, and
// drops all others. It is the WarningHandlerWithContext of the clients that the checks use;
// with another one, warn-level Pod Security is not reported.
type Warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if heard, ok := ctx.Value(warningsKey{}).(*[]string); ok {
		*heard = append(*heard, text)
	}
}

// Hearing gives a context for one request at a time, and where its warnings come in.
func Hearing(ctx context.Context) (context.Context, *[]string) {
	heard := &[]string{}
	return context.WithValue(ctx, warningsKey{}, heard), heard
}
