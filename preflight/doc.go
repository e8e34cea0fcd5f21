// Package preflight says whether a plan may start, before anything is written, and between two waves again. It surveys what a
// plan is made from, holds the catalogue of checks, the rights that a plan needs on each side, and the consent of those whose
// namespaces and volumes it touches.
//
// A check reads, tries with dry runs, and never writes. What cannot be read is a finding, not a pass.
package preflight
