package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A change is found again after what a pull request does to its surroundings, and only where it is meant.
func TestAChangeIsFoundInADeclaration(t *testing.T) {
	const text = `package p

func other(kept *volume) bool { return kept == nil || !mine(kept) }

func (r *room[T]) judge(kept *volume, names ...string) string {
	// Whoever has taken it keeps it.
	switch {
	case kept == nil,
		!mine(kept): // not this plan's
		return stop("it belongs to somebody else")
	case kept.Phase == Bound:
		tell(1, 2, 3)
		tell(names...)
		kept.Phase = ""
	}
	if kept.Phase == Bound && kept.Claim != "" || kept.Lost {
		return stop("it is bound")
	}
	return ""
}

var steps = []step{{Shrink, 1, "the side scales down"}, {Grow, 2, "the other scales up"}}
`
	for name, c := range map[string]struct{ v, old, now string }{
		"a condition":                    {"p room.judge | kept.Claim != \"\" -> false", `kept.Claim != ""`, `false`},
		"one side of an operator":        {"p room.judge | kept.Phase == Bound && kept.Claim != \"\"", `kept.Phase == Bound && kept.Claim != "" || kept.Lost`, `kept.Lost`},
		"a variable with another name":   {"p room.judge | pv.Claim != \"\" -> pv.Claim == \"\" && pv.Lost", `kept.Claim != "" ||`, `(kept.Claim == "" && kept.Lost) ||`},
		"a function with another name":   {"p room.judge | !isOurs(kept)", ",\n\t\t!mine(kept):", ":"},
		"another layout":                 {"p room.judge | case kept == nil, !mine(kept): ... -> case kept == nil: ...", "kept == nil,\n\t\t!mine(kept): // not this plan's", "kept == nil:"},
		"a method of another type":       {"p hall.judge | kept.Lost", ` || kept.Lost`, ``},
		"a message":                      {"p room.judge | return stop(\"...\") -> return \"...\" | 2", `stop("it is bound")`, `"it is bound"`},
		"a block":                        {"p room.judge | if kept.Phase == Bound && kept.Claim != \"\" || kept.Lost { ... } -> if false { ... }", `if kept.Phase == Bound && kept.Claim != "" || kept.Lost {`, `if false {`},
		"a statement":                    {"p room.judge | tell(1, ...)", "tell(1, 2, 3)\n", "\n"},
		"a list that is spread":          {"p room.judge | tell(names...)", "tell(names...)\n", "\n"},
		"statements that follow":         {"p room.judge | tell(names...); kept.Phase = \"\" -> kept.Phase = \"x\"", "tell(names...)\n\t\tkept.Phase = \"\"", `kept.Phase = "x"`},
		"what binds less than its place": {"p room.judge | kept.Claim != \"\" -> a || b", `kept.Claim != ""`, `(a || b)`},
		"the last element of a list":     {"p steps | {Grow, ...}", `, {Grow, 2, "the other scales up"}`, ``},
		"the first element of a list":    {"p steps | {Shrink, ...}", `{Shrink, 1, "the side scales down"}, `, ` `},
		"a part of an element":           {"p steps | {Shrink, ...} -> {Leave, ...}", `Shrink`, `Leave`},
	} {
		parts := strings.Split(c.v+" | ", " | ")
		v := variant{ID: name, In: parts[0], Drop: parts[1], Nth: len(parts[2]) * 2}
		if strings.Contains(v.Drop, "->") {
			v.Change, v.Drop = v.Drop, ""
		}
		path, got, err := folder(t, text).broken(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		layout := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if want := strings.Replace(text, c.old, c.now, 1); layout(got) != layout(want) || path != filepath.Join("p", "p.go") {
			t.Errorf("%s: in %s\n%s\nexpected\n%s", name, path, got, want)
		}
	}
}

func TestAChangeThatIsNotSureOfItsPlaceIsRefused(t *testing.T) {
	const text = `package p

func judge(kept *volume) bool {
	if kept == nil {
		return true
	}
	return a(kept, nil) || b(kept, nil)
}

func (r room) see() bool  { return a(r) || true }
func (d *door) see() bool { return a(d) || true }
`
	for name, v := range map[string]variant{
		"a function that is gone":            {In: "p decide", Drop: "a(...)"},
		"a method of one of two types":       {In: "p hall.see", Drop: "a(...)"},
		"what is not there":                  {In: "p judge", Drop: "b(kept, old)"},
		"what is there twice":                {In: "p judge", Change: "nil -> old"},
		"a number too many":                  {In: "p judge", Change: "nil -> old", Nth: 4},
		"a number without need":              {In: "p judge", Drop: "a(...)", Nth: 1},
		"two names for one":                  {In: "p judge", Change: "x(y, nil) || x(y, nil) -> true"},
		"a name that stands for another one": {In: "p judge", Change: "kept == judge -> true"},
		"what nothing is left of":            {In: "p judge", Drop: "kept == nil"},
		"no Go":                              {In: "p judge", Drop: "if {"},
		"no arrow":                           {In: "p judge", Change: "a(...)"},
		"less to put back than was found":    {In: "p judge", Change: "a(...) || b(...) -> b(...)"},
		"more to put back than was found":    {In: "p judge", Change: "a(...) -> b(..., ...)"},
	} {
		if _, got, err := folder(t, text).broken(v); err == nil {
			t.Errorf("%s: made %s", name, got)
		}
	}
}

// folder returns a product with one package of one file.
func folder(t *testing.T, text string) *product {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "p", "p.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return newProduct(root)
}
