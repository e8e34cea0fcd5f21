package simulation

// What an engine has sent beside itself arrives at once here, or, in schedules that overlap, when the engine has looked once
// more, or several times, or when another process has the plan. These have a random stream of their own.

// beside is the Beside of an engine.
func (r *process) beside(one func()) (wait func()) {
	if !r.w.options.Overlaps {
		one()
		return func() {}
	}
	over := false
	arrives := func() {
		if !over {
			over, r.besides = true, true
			one()
			r.besides = false
		}
	}
	r.w.sent = append(r.w.sent, arrives)
	return arrives
}

// arrive lets some of what was sent beside the engines arrive, in any order.
func (w *world) arrive() {
	if len(w.sent) == 0 {
		return
	}
	w.lateness.Shuffle(len(w.sent), func(i, j int) { w.sent[i], w.sent[j] = w.sent[j], w.sent[i] })
	n := w.lateness.IntN(len(w.sent) + 1)
	now := w.sent[:n]
	w.sent = w.sent[n:]
	for _, one := range now {
		one()
	}
}
