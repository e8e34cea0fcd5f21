package check

import "sync"

// Memory keeps what the inspections of one run read, from wave to wave. Its zero value is ready. It is safe for concurrent
// use.
type Memory struct {
	lock sync.Mutex
	of   *memo
	// lasting is what no change can outdate.
	lasting *memo
}

// Fade forgets what may have changed.
func (m *Memory) Fade() {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.of = nil
}

func (m *Memory) memo(lasting bool) *memo {
	m.lock.Lock()
	defer m.lock.Unlock()
	to := &m.of
	if lasting {
		to = &m.lasting
	}
	if *to == nil {
		*to = &memo{known: map[any]*memory{}}
	}
	return *to
}

// Keeping returns the inspection with what earlier ones have read.
func (i Inspection) Keeping(m *Memory) Inspection {
	i.kept = m
	return i
}

// Kept is Once for what holds as long as the standing checks do: the next inspections of the run share it.
func Kept[K comparable, V any](i Inspection, key K, read func() (V, error)) (V, error) {
	i.memo = i.kept.memo(false)
	return Once(i, key, read)
}

// Lasting is Once for what does not change.
func Lasting[K comparable, V any](i Inspection, key K, read func() (V, error)) (V, error) {
	i.memo = i.kept.memo(true)
	return Once(i, key, read)
}
