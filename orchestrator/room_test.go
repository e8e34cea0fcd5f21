package orchestrator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// seated returns a seat from words: a name, what its plan does or wants, its two clusters, and what else is said of it.
func seated(t *testing.T, words string) seat {
	t.Helper()
	all := strings.Fields(words)
	s := seat{name: all[0], pair: pair{all[2][:1], all[2][1:]}}
	switch what := all[1]; what {
	case "down", "begun", "kept", "fresh":
		s.urgency = map[string]urgency{"down": inFlight, "begun": begun, "kept": kept, "fresh": unbegun}[what]
	default:
		s.stage = map[string]stage{"checking": checking, "looking": looking, "idle": idle, "keeping": keeping, "flying": flying}[what]
		if s.stage == waits {
			t.Fatalf("no stage is %s", what)
		}
	}
	for _, w := range all[3:] {
		switch w {
		case "silent":
			s.silent = true
		case "named":
			s.named = true
		case "ends":
			s.ends = true
		default:
			s.by = w
		}
	}
	return s
}

// inWords returns a verdict in words: who begins, and which runs end.
func inWords(r room, v verdict) string {
	var begins []string
	for _, s := range r.seats {
		if s.stage == waits && v.lacks[s.name] == lacksNothing {
			begins = append(begins, s.name)
		}
	}
	slices.Sort(begins)
	slices.Sort(v.ends)
	return strings.TrimSpace(strings.Join(begins, " ") + " - " + strings.Join(v.ends, " "))
}

func TestTheRoomIsDivided(t *testing.T) {
	for name, c := range map[string]struct {
		limit int
		seats []string
		want  string
	}{
		"without a limit": {0, []string{"a down ew", "b fresh ew", "c flying ew"}, "a b -"},
		// ordinals on neither side
		"the reserve is for what is down":               {3, []string{"a idle ew", "b flying ew", "c begun ew", "d down ew"}, "d -"},
		"it begins first":                               {3, []string{"a idle ew", "b idle ew", "c begun ew", "d down ns"}, "d -"},
		"the checks of others end for it":               {3, []string{"a idle ew", "b checking ew", "c flying ew", "d down ns"}, "- b"},
		"else what is blocked":                          {3, []string{"a idle ew", "b looking ew", "c keeping ew", "d down ns"}, "- b"},
		"else what moves nothing now":                   {3, []string{"a idle ew", "b keeping ew", "c flying ew", "d down ns"}, "- a"},
		"else names":                                    {3, []string{"a flying ew", "b keeping ew named", "c flying ew", "d down ns"}, "- b"},
		"else what is down where nothing answers":       {3, []string{"a flying ew", "b flying ns silent", "c flying ew", "d down ew"}, "- b"},
		"else the next wave that is over":               {3, []string{"a flying ew", "b flying ew", "c flying ew", "d down ns"}, "- a"},
		"one for each":                                  {3, []string{"a idle ew", "b checking ew", "c flying ew", "d down ns", "e down ns"}, "- a b"},
		"what ends anyway will do":                      {3, []string{"a idle ew ends", "b checking ew", "c flying ew", "d down ns"}, "-"},
		"what ends after its wave is late":              {3, []string{"a flying ew ends", "b idle ew", "c flying ew", "d down ns"}, "- b"},
		"unless nothing else ends sooner":               {3, []string{"a flying ew ends", "b flying ew", "c flying ew", "d down ns"}, "-"},
		"nothing ends while there is room":              {3, []string{"a checking ew", "b checking ew", "d down ns"}, "d -"},
		"what is down where nothing answers keeps none": {3, []string{"a flying ns silent", "d down ns silent", "e down ew", "f down ew", "g down ew"}, "e f - a"},
		// the others
		"nothing begins where nothing answers":   {9, []string{"a down ns silent", "b begun ns silent", "c fresh ns silent", "d fresh ew"}, "d -"},
		"four are checked per cluster":           {90, []string{"a checking ew", "b checking ew", "c checking en", "d fresh ew", "e fresh ew", "f fresh sn"}, "d f -"},
		"one cluster counts once":                {90, []string{"a checking ee", "b checking ee", "c checking ee", "d fresh ee", "e fresh ee"}, "d -"},
		"what has begun is before what has not":  {3, []string{"a fresh ew", "b begun ew", "c kept ew"}, "b c -"},
		"checks end for what has begun":          {3, []string{"a checking ew", "b flying ew", "c begun ew"}, "- a"},
		"and for names":                          {3, []string{"a checking ew", "b flying ew", "c kept ew"}, "- a"},
		"checks end for no new plan":             {3, []string{"a checking ew", "b flying ew", "c fresh ew"}, "-"},
		"what a silent cluster holds up ends":    {3, []string{"a idle ns silent", "b flying ew", "c begun ew"}, "- a"},
		"if somebody needs that":                 {3, []string{"a idle ns silent", "b flying ew"}, "-"},
		"but not what keeps names":               {3, []string{"a keeping ns silent named", "b flying ew", "c begun ew"}, "-"},
		"nor what is down":                       {3, []string{"a flying ns silent", "b flying ew", "c begun ew"}, "-"},
		"a pair without any comes first":         {3, []string{"a idle ew", "b begun ew", "c fresh ns"}, "c -"},
		"a user without any comes first":         {3, []string{"a idle ew eve", "b begun ew eve", "c fresh ew bob"}, "c -"},
		"a pair gives back what is lent":         {3, []string{"a idle ew", "b flying ew", "c begun ew", "d fresh ns"}, "- a"},
		"after the wave":                         {3, []string{"a flying ew", "b flying ew", "d fresh ns"}, "- a"},
		"a user gives back what is lent":         {3, []string{"a idle ew eve", "b idle ns eve", "d fresh ew bob"}, "- a"},
		"to whom it helps":                       {6, []string{"a idle ew eve", "b idle ew eve", "c idle ns eve", "d idle ns eve", "e fresh ew bob"}, "- a"},
		"plans without names do too":             {3, []string{"a keeping ew", "b keeping ew", "d fresh ns"}, "- a"},
		"names do not":                           {3, []string{"a keeping ew named", "b keeping ew named", "d fresh ns"}, "-"},
		"nobody gives back a share":              {6, []string{"a idle ew", "b idle ew", "c idle ns", "d idle ns", "e fresh ew", "f fresh ns"}, "-"},
		"what gave back does not begin again":    {6, []string{"a idle ew", "b idle ew", "c begun ew", "d fresh ns", "e idle ns"}, "d -"},
		"what nobody else wants is lent":         {6, []string{"a idle ew", "b idle ew", "c idle ew", "d fresh ew", "e idle ns"}, "-"},
		"a cluster that is silent has no share":  {6, []string{"a idle ew", "b idle ew", "c idle ew", "d fresh ew", "e fresh ns silent"}, "d -"},
		"of those who wait alike, the first one": {2, []string{"b fresh ew", "a fresh ew", "c idle ew"}, "a -"},
	} {
		r := room{limit: c.limit, read: true}
		for _, words := range c.seats {
			r.seats = append(r.seats, seated(t, words))
		}
		if got := inWords(r, r.divide()); got != c.want {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
	}
}

// Of 690 plans of one pair of clusters, or of one user, and one of another, the other one begins as soon as the next run
// ends, and at the end both have what they can use. It ends: nothing takes back what it gave.
func TestNobodyTakesAllRoom(t *testing.T) {
	for _, flood := range []string{"fresh ew", "begun ew", "fresh ew eve", "begun ew eve"} {
		r := room{limit: 230, read: true}
		for k := range 690 {
			r.seats = append(r.seats, seated(t, fmt.Sprintf("flood%03d %s", k, flood)))
		}
		if settled(t, &r); running(r, "flood") != 230-23 {
			t.Errorf("%s: %d run alone", flood, running(r, "flood"))
		}
		for k := range 150 {
			r.seats = append(r.seats, seated(t, fmt.Sprintf("other%03d fresh ns bob", k)))
		}
		if settled(t, &r); running(r, "other") != 103 || running(r, "flood") != 104 {
			t.Errorf("%s: %d and %d run", flood, running(r, "flood"), running(r, "other"))
		}
	}
}

// Whatever is under way and wanted, plans do not take the room from each other for ever.
func TestTheDivisionEnds(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := room{limit: random.IntN(40), read: true}
		for k := range random.IntN(120) {
			words := []string{"begun", "fresh", "idle", "kept", "keeping", "checking"}[random.IntN(6)]
			r.seats = append(r.seats, seated(t, fmt.Sprintf("p%d %s %c%c %s", k, words, "abc"[random.IntN(3)], "xyz"[random.IntN(3)], []string{"", "eve", "bob", "eve"}[random.IntN(4)])))
		}
		settled(t, &r)
	}
}

// settled carries verdicts out until none changes anything.
func settled(t *testing.T, r *room) {
	t.Helper()
	for range 2000 {
		v, changed := r.divide(), false
		for k := range r.seats {
			s := &r.seats[k]
			switch {
			case s.stage == checking:
				s.stage, changed = idle, true
			case s.stage == waits && v.lacks[s.name] == lacksNothing:
				s.stage, changed = idle, true
				if s.urgency == unbegun {
					s.stage = checking
				}
			case slices.Contains(v.ends, s.name):
				s.stage, s.urgency, changed = waits, begun, true
			}
		}
		if !changed {
			return
		}
	}
	t.Fatal("plans take the room from each other for ever")
}

func running(r room, prefix string) (n int) {
	for _, s := range r.seats {
		if s.stage != waits && strings.HasPrefix(s.name, prefix) {
			n++
		}
	}
	return n
}

// Until all plans were read, only what has ordinals on neither side begins.
func TestNothingElseBeginsBeforeAllPlansAreRead(t *testing.T) {
	r := room{limit: 3, seats: []seat{seated(t, "a fresh ew"), seated(t, "b begun ew"), seated(t, "c kept ew"), seated(t, "d down ew")}}
	v := r.divide()
	if want := map[string]lack{"a": lacksReading, "b": lacksReading, "c": lacksReading}; !maps.Equal(v.lacks, want) {
		t.Errorf("%v", v.lacks)
	}
}

func TestTheReserveLeavesRoomForPlansThatMove(t *testing.T) {
	for limit, want := range map[int]int{1: 0, 2: 0, 3: 1, 10: 3, 48: 16, 160: 16, 230: 23} {
		if got := reserve(limit); got != want {
			t.Errorf("of %d places %d are reserved, expected %d", limit, got, want)
		}
	}
}

// The longest division is as long as a process may hold its lock.
func BenchmarkDivide(b *testing.B) {
	r := room{limit: 230, read: true}
	for k := range 10000 {
		s := seat{name: fmt.Sprint(k), urgency: unbegun, pair: pair{fmt.Sprint(k % 100), "w"}, by: fmt.Sprint(k % 7), since: time.Unix(int64(k), 0)}
		if k < 230 {
			s.stage = idle
		}
		r.seats = append(r.seats, s)
	}
	for b.Loop() {
		r.divide()
	}
}
