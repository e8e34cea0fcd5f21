// Package preflight decides whether a plan may start, before anything is written, and checks again between
// waves. It surveys the inputs of a plan. It holds the catalogue of checks, the rights that a plan needs on
// each side, and the consent of those whose namespaces and volumes the plan touches.
//
// A check reads, sends dry runs, and never writes. An object that cannot be read is a finding, not a pass.
package preflight
