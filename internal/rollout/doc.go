// Package rollout implements `stsmigrate rollout` for a set of either kind that is not being moved: pause,
// resume, restart, undo, its history, and the status of an update. Every change is one conditional write.
package rollout
