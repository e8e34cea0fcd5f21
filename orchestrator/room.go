package orchestrator

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// This file decides which plans get the room of a process: a function of what the process knows at one moment.
// maxplans.go does it.

// maxConcurrentChecks is how many plans are checked at once per cluster. The checks of many plans take
// the same time in total, but the plans that are checked first can move meanwhile. The finished checks
// of a plan are lost when its process dies.
const maxConcurrentChecks = 4

// reserve returns how many of the places are for plans with ordinals on neither side alone. It is for the waves of
// one cluster whose process dies (--cluster-waves), or for a tenth of many. A process with few places keeps a third of
// them: what else is in its way ends in seconds, and more of them would stand empty for most of the time.
func reserve(limit int) int { return min(max(16, limit/10), limit/3) }

// Unreserved returns how many of the places are for plans that may wait, too.
func Unreserved(limit int) int { return limit - reserve(limit) }

// stage is what a plan does in this process.
type stage int

const (
	waits    stage = iota // it has no run
	checking              // its checks have not passed, and nothing is written
	looking               // it is blocked, and looks whether that has ended
	idle                  // it moves, with no ordinal on neither side
	keeping
	flying // ordinals are on neither side
)

// pair is the clusters of a plan, in order, by their names.
type pair [2]string

// seat is one plan that has room in a process, or wants it.
type seat struct {
	name    string
	stage   stage
	urgency urgency // of one that waits
	pair    pair
	by      string // who has approved it; "" if that is not known
	since   time.Time
	// silent reports that a cluster of the plan cannot be reached.
	silent bool
	// named reports that the plan keeps names.
	named bool
	// ends reports that the run was asked to end.
	ends bool
}

// room is the room of a process, and the plans that have or want it.
type room struct {
	limit int // 0 means no limit
	// read reports that every plan was read once. Until then the most urgent ones may not be known.
	read  bool
	seats []seat
}

// lack is what a plan waits for that does not begin.
type lack int

const (
	undecided    lack = -1
	lacksNothing lack = iota - 1
	lacksReading      // of the other plans
	lacksTurn         // other plans of its clusters are checked
	lacksCluster
	lacksRoom
)

// isTold reports whether users are told of it when it lasts. The rest passes as soon as this process has done its work.
func (l lack) isTold() bool { return l >= lacksCluster }

// verdict says of each plan that waits what it lacks, and which runs make room.
type verdict struct {
	lacks map[string]lack
	ends  []string
}

// divide decides who gets the room:
//
//  1. Plans with ordinals on neither side, as long as there is any, also of the reserve. Else something else ends for
//     each of them: at once what is not moved yet, then what has no ordinal on neither side, and last, after its wave,
//     what has.
//  2. The others, which leave the reserve free: first those of clusters and requesters that have less than their share,
//     and among them the more urgent. Those that have more than a share while others have less give some back. What is left
//     is lent.
//
// Nothing begins whose cluster does not answer, and what such a cluster holds up makes room for everything else.
func (r room) divide() verdict {
	d := newDivision(r)
	of := map[seat]*group{}
	for _, s := range d.seats {
		switch {
		case s.stage != waits:
		case s.silent:
			d.lacks[s.name] = lacksCluster
		case s.urgency == inFlight || r.read:
			alike := seat{urgency: s.urgency, pair: s.pair, by: s.by}
			if of[alike] == nil {
				of[alike] = &group{of: alike}
			}
			of[alike].seats = append(of[alike].seats, s)
		default:
			d.lacks[s.name] = lacksReading
		}
	}
	groups := slices.Collect(maps.Values(of))
	for _, g := range groups {
		slices.SortFunc(g.seats, older)
	}
	for len(groups) > 0 {
		slices.SortFunc(groups, d.order)
		admitted := slices.IndexFunc(groups, d.admits) // the order stays the same until one is
		if admitted < 0 {
			break
		}
		groups = slices.DeleteFunc(groups[admitted:], func(g *group) bool { return len(g.seats) == 0 })
	}
	return d.verdict
}

// group is the plans that wait for the same reasons, the oldest first.
type group struct {
	of    seat // has what is alike
	seats []seat
}

func older(a, b seat) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
}

// division is a room while it is divided.
type division struct {
	room
	verdict
	taken int
	// pairs and users count the places of each pair of clusters, and of each requester. One that has none and wants one
	// counts 0.
	pairs map[pair]int
	users map[string]int
	// checks counts the plans that are checked, by cluster.
	checks map[string]int
	// soon and later count the runs that were asked to end, at once and after their wave, and whose places are still
	// promised to no plan.
	soon, later int
	runs        []*seat // which may still be asked to end
}

func newDivision(r room) *division {
	d := &division{room: r, verdict: verdict{lacks: map[string]lack{}}, pairs: map[pair]int{}, users: map[string]int{}, checks: map[string]int{}}
	for k := range d.seats {
		s := &d.seats[k]
		if s.stage == waits {
			if !s.silent {
				d.count(s, 0)
			}
			continue
		}
		d.taken++
		d.count(s, 1)
		if s.stage == checking {
			d.checked(s)
		}
		switch {
		case !s.ends:
			d.runs = append(d.runs, s)
		case s.stage == flying:
			d.later++
		default:
			d.soon++
		}
	}
	return d
}

func (d *division) count(s *seat, n int) {
	d.pairs[s.pair] += n
	if s.by != "" {
		d.users[s.by] += n
	}
}

func (d *division) checked(s *seat) {
	d.checks[s.pair[0]]++
	if s.pair[1] != s.pair[0] {
		d.checks[s.pair[1]]++
	}
}

// share returns the share of each of so many pairs of clusters, or requesters.
func (d *division) share(of int) int { return max(Unreserved(d.limit)/max(of, 1), 1) }

// full reports whether the clusters or the requester of a plan have their share.
func (d *division) full(s *seat) bool {
	return d.pairs[s.pair] >= d.share(len(d.pairs)) || s.by != "" && d.users[s.by] >= d.share(len(d.users))
}

// owes reports whether a plan has a place beyond the share of its clusters or its requester, which another one has less
// than. It never takes from one to give too much to another.
func (d *division) owes(s, to *seat) bool {
	ofPair, ofUser := d.share(len(d.pairs)), d.share(len(d.users))
	lessPair := s.pair != to.pair && d.pairs[to.pair] < ofPair
	lessUser := s.by != to.by && (to.by == "" || d.users[to.by] < ofUser)
	if !lessPair && s.pair != to.pair || !lessUser && s.by != to.by {
		return false
	}
	return lessPair && d.pairs[s.pair] > ofPair || lessUser && d.users[s.by] > ofUser
}

// order compares two groups by who is next.
func (d *division) order(a, b *group) int {
	return cmp.Or(
		compare(a.of.urgency != inFlight, b.of.urgency != inFlight),
		compare(d.full(&a.of), d.full(&b.of)),
		cmp.Compare(a.of.urgency, b.of.urgency),
		cmp.Compare(max(d.pairs[a.of.pair], d.users[a.of.by]), max(d.pairs[b.of.pair], d.users[b.of.by])),
		cmp.Compare(min(d.pairs[a.of.pair], d.users[a.of.by]), min(d.pairs[b.of.pair], d.users[b.of.by])),
		older(a.seats[0], b.seats[0]),
	)
}

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// admit lets a plan begin, and returns what it lacks otherwise. A run that ends for it counts as its place.
func (d *division) admit(s seat) lack {
	if s.urgency == unbegun && (d.checks[s.pair[0]] >= maxConcurrentChecks || d.checks[s.pair[1]] >= maxConcurrentChecks) {
		return lacksTurn
	}
	limit := Unreserved(d.limit)
	if s.urgency == inFlight {
		limit = d.limit
	}
	switch {
	case d.limit == 0 || d.taken < limit:
		d.taken++
	case d.makesRoom(&s):
		d.lacks[s.name] = lacksRoom
	default:
		return lacksRoom
	}
	d.count(&s, 1)
	if s.urgency == unbegun {
		d.checked(&s)
	}
	return lacksNothing
}

// admits lets the first plan of a group begin. Otherwise it says what all plans of the group lack.
func (d *division) admits(g *group) bool {
	why := d.admit(g.seats[0])
	if why == lacksNothing {
		g.seats = g.seats[1:]
		return true
	}
	for _, s := range g.seats {
		d.lacks[s.name] = why
	}
	return false
}

// makesRoom ends a run for a plan, unless one that ends anyway will do.
func (d *division) makesRoom(s *seat) bool {
	if d.soon > 0 {
		d.soon--
		return true
	}
	if d.later > 0 && s.urgency != inFlight {
		d.later--
		return true
	}
	gives := d.givesWay
	if s.urgency == inFlight {
		gives = func(_, _ *seat) bool { return true }
	}
	var victim *seat
	for _, v := range d.runs {
		if gives(v, s) && (victim == nil || d.harm(v) < d.harm(victim)) {
			victim = v
		}
	}
	if victim == nil {
		return false
	}
	if victim.stage == flying && !victim.silent && d.later > 0 { // one that ends as late will do
		d.later--
		return true
	}
	d.runs = slices.DeleteFunc(d.runs, func(v *seat) bool { return v == victim })
	d.count(victim, -1)
	d.ends = append(d.ends, victim.name)
	return true
}

// givesWay reports whether a run ends for a plan with nothing on neither side. Names that are kept never do.
func (d *division) givesWay(v, to *seat) bool {
	switch {
	case v.stage == checking && (v.silent || to.urgency < unbegun), v.stage == idle && v.silent:
		return true
	case v.stage == keeping && v.named:
		return false
	}
	return d.owes(v, to)
}

// harm orders runs by how much harm it does when they end. What has begun and moves nothing waits only; names that are
// kept no longer are not found when a pod restarts; an ordinal on neither side stays there.
func (d *division) harm(v *seat) int {
	switch {
	case v.stage == checking:
		return 0
	case v.silent && v.stage == idle:
		return 1
	case v.silent && v.stage == flying:
		return int(flying)
	case v.stage == flying:
		return int(flying) + 1
	}
	return int(v.stage)
}
