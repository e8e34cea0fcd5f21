package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// asked are the requests of one resource, by verb.
type asked map[string]int

func (a asked) all() (n int) {
	for _, k := range a {
		n += k
	}
	return n
}

// writes counts those that change something, dry runs not included.
func (a asked) writes() (n int) {
	for verb, k := range a {
		if verb != "get" && verb != "list" && verb != "dry run" {
			n += k
		}
	}
	return n
}

// verbs are the columns of the table. A dry run has a column of its own.
func verbs() []string {
	return []string{"get", "list", "create", "update", "patch", "delete", "dry run"}
}

// requests are those in the audit logs of both clusters.
type requests struct {
	// of are those of the orchestrators, by resource, from when they began.
	of map[string]asked
	// by are those of all programs, by program, between two times.
	by       map[string]asked
	from, to time.Time
	took     map[string]time.Duration // to answer them, by program
}

func newRequests(from, to time.Time) *requests {
	return &requests{of: map[string]asked{}, by: map[string]asked{}, from: from, to: to, took: map[string]time.Duration{}}
}

// table returns what was requested, per ordinal.
func (s *storm) table() (string, error) {
	r := newRequests(s.span.from, s.span.to)
	for _, c := range []*cluster.Cluster{s.bed.East, s.bed.West} {
		if err := r.read(c.AuditLog()); err != nil {
			return "", err
		}
	}
	ordinals := s.plans * s.pods
	return requestTable("requests per ordinal", r.of, ordinals) + "\n" + requestTable("while they moved, by program", r.by, ordinals) + "\n" + r.times(), nil
}

// read adds up the requests of an audit log.
func (r *requests) read(file string) error { return readAudit(file, r.add) }

// readAudit passes on the requests of an audit log.
func readAudit(file string, to func(audited)) (err error) {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e audited
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		to(e)
	}
	return lines.Err()
}

// audited is a line of an audit log.
type audited struct {
	Verb, UserAgent, RequestURI              string
	ObjectRef                                struct{ Resource, Subresource string }
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// verb is a column of the table.
func (e audited) verb() string {
	if strings.Contains(e.RequestURI, "dryRun=") {
		return "dry run"
	}
	return e.Verb
}

// resource is a row of the table.
func (e audited) resource() string {
	resource := cmp.Or(e.ObjectRef.Resource, "discovery")
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return resource
}

func (e audited) program() string {
	program, _, _ := strings.Cut(e.UserAgent, "/")
	return program
}

// ours reports whether an orchestrator has sent the request.
func (e audited) ours() bool { return e.program() == "stsmigrate-orchestrator" }

func (r *requests) add(e audited) {
	if e.Verb == "watch" {
		return
	}
	count := func(in map[string]asked, of string) {
		if in[of] == nil {
			in[of] = asked{}
		}
		in[of][e.verb()]++
	}
	program := e.program()
	if e.ours() {
		count(r.of, e.resource())
	}
	if at := e.RequestReceivedTimestamp; !at.Before(r.from) && at.Before(r.to) {
		count(r.by, program)
		r.took[program] += e.StageTimestamp.Sub(at)
	}
}

// times returns a line on how long the requests of each program took to answer, on average.
func (r *requests) times() string {
	var out []string
	for _, program := range slices.SortedFunc(maps.Keys(r.took), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.took[b], r.took[a]), cmp.Compare(a, b))
	}) {
		out = append(out, fmt.Sprintf("%s %.1f ms", program, r.took[program].Seconds()*1000/float64(r.by[program].all())))
	}
	return "answered after, on average: " + strings.Join(out, ", ") + "\n"
}

func requestTable(title string, by map[string]asked, ordinals int) string {
	rows := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].all(), by[a].all()), cmp.Compare(a, b))
	})
	all := asked{}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\t%s\tall\t\n", title, strings.Join(verbs(), "\t"))
	row := func(name string, a asked) {
		fmt.Fprintf(w, "%s\t", name)
		for _, v := range verbs() {
			fmt.Fprintf(w, "%s\t", figure(a[v], ordinals))
		}
		fmt.Fprintf(w, "%s\t\n", figure(a.all(), ordinals))
	}
	for _, name := range rows {
		row(name, by[name])
		for v, n := range by[name] {
			all[v] += n
		}
	}
	row("all", all)
	_ = w.Flush() // into memory
	return out.String()
}

// figure returns a number per ordinal, or nothing for none.
func figure(n, ordinals int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(ordinals))
}
