// Package reasons gives every reason for which a plan is blocked, waits or refuses a request an ID, and explains it: what
// happened, what is unchanged, and what to run in which order.
//
// An ID is attached where the reason is made. It is an interface, like the exit codes: scripts and alerts match it, so
// it never changes its meaning. The explanations are data (table/*.yaml), the same for `stsmigrate explain`, for
// docs/reasons.md and for the alerts. The package imports nothing of this program and reads no cluster.
package reasons
