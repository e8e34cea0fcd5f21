package repo

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/pictures/svg"
)

var update = flag.Bool("update", false, "write the picture of the packages into docs/pictures")

// house is the packages of the product, and what each of them imports of the others.
type house map[string][]string

// builtFrom returns the packages that imports lists, without those for tests.
func builtFrom(imports map[string][]string) house {
	forTests := func(name string) bool { return strings.HasSuffix(name, "test") }
	h := house{}
	for _, r := range rooms() {
		if !forTests(r.name) {
			h[r.name] = nil
		}
	}
	for name := range h {
		for _, imported := range imports[name] {
			below := strings.TrimPrefix(imported, module+"/")
			if _, known := h[below]; known {
				h[name] = append(h[name], below)
			}
		}
		slices.Sort(h[name])
	}
	return h
}

// reaches reports whether one package imports another, directly or by others.
func (h house) reaches(from, to string) bool {
	return slices.ContainsFunc(h[from], func(below string) bool { return below == to || h.reaches(below, to) })
}

// arrows returns what a package imports and does not also reach by another of its imports.
func (h house) arrows(name string) []string {
	return slices.DeleteFunc(slices.Clone(h[name]), func(below string) bool {
		return slices.ContainsFunc(h[name], func(other string) bool { return other != below && h.reaches(other, below) })
	})
}

// floor returns how many packages are below a package, one on another.
func (h house) floor(name string) int {
	out := 0
	for _, below := range h[name] {
		out = max(out, h.floor(below)+1)
	}
	return out
}

// places returns the middle of every package in a picture of this width: each near to what it imports.
func (h house) places(width int) map[string]int {
	floors, at := map[int][]string{}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		floors[h.floor(name)] = append(floors[h.floor(name)], name)
	}
	for level := range len(floors) {
		row := floors[level]
		pull := func(name string) int {
			sum, n := 0, 0
			for _, below := range h.arrows(name) {
				sum, n = sum+at[below], n+1
			}
			if n == 0 {
				return width / 2
			}
			return sum / n
		}
		slices.SortStableFunc(row, func(a, b string) int { return cmp.Compare(pull(a), pull(b)) })
		for n, name := range row {
			at[name] = width * (2*n + 1) / (2 * len(row))
		}
	}
	return at
}

// picture draws the packages, the upper ones above, and their arrows down.
func (h house) picture() string {
	const width, step, high = 900, 84, 30
	top := 0
	for name := range h {
		top = max(top, h.floor(name))
	}
	y := func(name string) int { return 40 + (top-h.floor(name))*step }
	p, at := svg.New(width, 60+top*step+high, "The packages and what they import"), h.places(width)
	p.Small(12, 20, "An arrow is an import. What a package also reaches by another of its imports has no arrow of its own.")
	names := slices.Sorted(maps.Keys(h))
	for _, name := range names {
		for _, below := range h.arrows(name) {
			p.Arrow(at[name], y(name)+high, at[below], y(below)-1)
		}
	}
	for _, name := range names {
		w := len(name)*7 + 18
		p.Box(at[name]-w/2, y(name), w, high, svg.Quiet, name)
	}
	return p.String()
}

// The picture of the packages is drawn from what they import.
func TestThePictureOfThePackagesIsAsTheyAre(t *testing.T) {
	const file = "docs/pictures/packages.svg"
	want := builtFrom(imports(t)).picture()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != want {
		t.Errorf("%s is stale: run go test ./test/repo -run Picture -update, and look at it", file)
	}
}

func TestArrowsThatOthersImplyAreLeftOut(t *testing.T) {
	h := house{"cmd": {"engine", "plans", "storage"}, "engine": {"plans", "storage"}, "storage": {"plans"}, "plans": nil}
	if got := fmt.Sprint(h.arrows("cmd"), h.arrows("engine"), h.arrows("storage")); got != "[engine] [storage] [plans]" {
		t.Errorf("arrows are %s", got)
	}
	if h.floor("cmd") != 3 || h.floor("plans") != 0 {
		t.Errorf("cmd is on floor %d, plans on floor %d", h.floor("cmd"), h.floor("plans"))
	}
}
