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

// verbs are the columns of the table. A dry run has a column of its own.
func verbs() []string {
	return []string{"get", "list", "create", "update", "patch", "delete", "dry run"}
}

// requests returns a table of what the orchestrators have requested, per ordinal, from the audit logs of both clusters.
func (s *storm) requests() (string, error) {
	by := map[string]asked{}
	for _, c := range []*cluster.Cluster{s.bed.East, s.bed.West} {
		if err := read(c.AuditLog(), by); err != nil {
			return "", err
		}
	}
	return requestTable(by, s.plans*s.pods), nil
}

// read adds up the requests of an audit log.
func read(file string, by map[string]asked) (err error) {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent, RequestURI string
			ObjectRef                   struct{ Resource, Subresource string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if e.Verb == "watch" || !strings.HasPrefix(e.UserAgent, "stsmigrate-orchestrator/") {
			continue
		}
		if strings.Contains(e.RequestURI, "dryRun=") {
			e.Verb = "dry run"
		}
		resource := cmp.Or(e.ObjectRef.Resource, "discovery")
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		if by[resource] == nil {
			by[resource] = asked{}
		}
		by[resource][e.Verb]++
	}
	return lines.Err()
}

func requestTable(by map[string]asked, ordinals int) string {
	rows := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].all(), by[a].all()), cmp.Compare(a, b))
	})
	all := asked{}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "requests per ordinal\t%s\tall\t\n", strings.Join(verbs(), "\t"))
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
