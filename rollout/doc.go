// Package rollout is what `stsmigrate rollout` does with a set of either kind that is not being moved: pause, resume, restart,
// undo, its history, and how far an update has got. Every change is one conditional write.
package rollout
