package engine

// Acceleration is what the engine can do without: a move is slower then, or refuses more evictions, and ends the same way.
type Acceleration string

const (
	// Batch looks at the volumes of many ordinals before it writes to the first of them.
	Batch Acceleration = "batch"
	// LetDrainsThrough lets a wave wait for the drain of a node.
	LetDrainsThrough Acceleration = "let drains through"
	// OpenBudgets opens the budgets while a wave that has not left waits.
	OpenBudgets Acceleration = "open budgets"
	// ReadAhead reads and prepares the next wave while one is handed over.
	ReadAhead Acceleration = "read ahead"
	// SkipRelax leaves the budgets tight between two waves that follow each other at once.
	SkipRelax Acceleration = "skip Relax"
)

// Accelerations lists all of them.
func Accelerations() []Acceleration {
	return []Acceleration{Batch, LetDrainsThrough, OpenBudgets, ReadAhead, SkipRelax}
}
