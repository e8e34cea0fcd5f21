// Package notify tells an HTTP receiver how the state of plans changes, as CloudEvents.
//
//	event.go   decides whether a state is news, and what is told of it
//	told.go    leaves out what a reason quotes of pods, gates, patches and other programs
//	sign.go    signs a message, as Standard Webhooks does
//	target.go  refuses receivers that must not be sent to, and makes the client
//	sender.go  sends one message after another, from a queue of limited length
//
// A message is sent until the receiver has accepted it. Its id follows from the object of the plan and the
// change, so a receiver can drop a message that it gets twice. The package reads no cluster, and an
// event has no field for anything of a pod, a gate or a patch.
package notify
