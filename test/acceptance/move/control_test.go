package move_test

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/deploy"
	"github.com/stsmigrate/stsmigrate/internal/preflight/access"
	"github.com/stsmigrate/stsmigrate/internal/records"
)

func TestPausesBetweenOrdinals(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		p := start(t, s.applyArgs()...)
		p.until("web-2 Shrink     source")
		p.signal(syscall.SIGSTOP) // else it may have arrived
		run(t, s.args("pause")...).expect(t, done, "pauses when the ordinal under way has arrived")
		p.signal(syscall.SIGCONT)
		p.end().expect(t, done, "paused before web-1 Tighten", "stsmigrate resume web")
		s.shows(done, "Paused", "stsmigrate resume web")
		s.sliceIs(s.source, 0, 2)
		s.sliceIs(s.destination, 2, 1)
		run(t, s.applyArgs()...).expect(t, failed, "is paused: continue it with", "stsmigrate resume web")
		run(t, s.args("resume")...).expect(t, done, "moved: 3 ordinals")
		s.arrived(before)
		run(t, s.args("finalize")...).expect(t, done)
		proper(t, w, 1)
		s.settled(before)
	})
}

func TestASecondProcessWaitsForTheDeathOfTheFirst(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		first := start(t, s.applyArgs()...)
		first.until("web-2 Tighten")
		holder := "/" + strconv.Itoa(first.cmd.Process.Pid)
		first.signal(syscall.SIGSTOP) // alive and silent: no other process may act yet
		for _, args := range [][]string{s.applyArgs(), s.args("abort")} {
			r := run(t, args...).expect(t, failed, "is being carried out by", holder, "stsmigrate status web")
			same(t, "output of the second", "", r.stdout)
		}
		s.shows(done, "Moving", holder)
		first.signal(syscall.SIGKILL)
		first.end().expect(t, killed)

		began := time.Now()
		second := start(t, s.applyArgs()...)
		second.until("web-2")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the second process did nothing for %s after the death of the first", took)
		}
		second.end().expect(t, done, "moved: 3 ordinals")
		s.arrived(before)
		proper(t, w, 1)
	})
}

// A process that was suspended for long wakes up after another has continued the plan.
func TestAProcessThatWasOvertakenStops(t *testing.T) {
	inBothModes(t, options{replicas: 3}, func(s *migration) {
		t := s.t
		before := s.state(s.source)
		w := s.watched()
		s.planned()
		first := start(t, s.applyArgs()...)
		first.until("web-2 Release")
		first.signal(syscall.SIGSTOP)
		s.expire()
		second := start(t, s.applyArgs()...)
		second.until("web-2 Grow")
		first.signal(syscall.SIGCONT)
		first.end().expect(t, held, "another process has taken plan web over")
		second.end().expect(t, done, "moved: 3 ordinals")
		s.arrived(before)
		run(t, s.args("finalize")...).expect(t, done)
		proper(t, w, 1)
		s.settled(before)
	})
}

func TestAForeignHandStopsTheMove(t *testing.T) {
	for name, c := range map[string]struct {
		at            string // the step after which another writer scales the source
		replicas      string
		says          []string
		mend          string
		witnessIsCalm bool
	}{
		"that scales down": {
			at: "web-3 Grow", replicas: "2", mend: "3",
			says: []string{"StatefulSet", "/web in east has the ordinals [0..1]", "expected [0..2]", "written by kubectl-edit"},
		},
		"that scales up": {
			at: "web-3 Shrink     source", replicas: "4", mend: "3", witnessIsCalm: true,
			says: []string{"StatefulSet", "/web in east has ordinal 3 in its range again", "written by kubectl-edit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBothModes(t, options{replicas: 4}, func(s *migration) {
				t := s.t
				before := s.state(s.source)
				w := s.watched()
				s.planned()
				p := start(t, s.applyArgs()...)
				p.until(c.at)
				p.signal(syscall.SIGSTOP)
				s.change(s.source, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":`+c.replicas+`}}`)
				p.signal(syscall.SIGCONT)
				p.end().expect(t, held, append(c.says, "blocked: ", "stsmigrate resume web", "stsmigrate abort web")...)
				s.shows(held, append(c.says, "Blocked")...)
				run(t, s.applyArgs()...).expect(t, held, c.says...)

				s.change(s.source, &appsv1.StatefulSet{}, "web", `{"spec":{"replicas":`+c.mend+`}}`)
				run(t, s.args("resume")...).expect(t, done, "moved: 4 ordinals")
				s.arrived(before)
				if c.witnessIsCalm {
					proper(t, w, 2)
				}
				run(t, s.args("finalize")...).expect(t, done)
				s.settled(before)
			})
		})
	}
}

// While an orchestrator carries out a plan, a user who reaches only the plan's home can watch and control it.
func TestADetachedPlanNeedsOnlyItsHome(t *testing.T) {
	t.Parallel()
	s := newMigration(t, reimport, options{replicas: 2})
	for _, on := range []*end{s.source, s.destination} {
		s.create(on, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: on.namespace, Name: access.ConsentMap}, Data: map[string]string{"moves-to": "* */*/* plan=* hash=* until=*", "moves-from": "* */*/* plan=* hash=* until=*"}})
	}
	s.planned()
	s.learnsMigrations(s.destination)
	detach := s.applyArgs("--detach", "--home-namespace", s.destination.namespace)
	run(t, detach...).expect(t, failed, "there is no orchestrator in namespace "+s.destination.namespace)
	// An orchestrator that is alive and slow to begin.
	alive := records.NewHeartbeat(s.destination, s.destination, s.destination.namespace, "test", "v0", time.Now)
	if err := alive.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	go alive.Keep(t.Context(), func(_, _ error) {})
	run(t, detach...).expect(t, done, "the orchestrator in namespace")
	home := func(args ...string) []string {
		return append(args, "--kubeconfig", s.destination.cluster.Kubeconfig, "-n", s.destination.namespace)
	}
	run(t, home("status", "web")...).expect(t, done, "Planned", "unseen:", "source of plan web", `has no context "east"`, "on the source", "?")
	run(t, home("pause", "web")...).expect(t, done, "pauses when")
	stored := func() map[string]string {
		all := s.versions()
		maps.DeleteFunc(all, func(name, _ string) bool {
			return strings.HasPrefix(name, "destination Lease/stsmigrate.orchestrator.")
		}) // it beats
		return all
	}
	before := stored()
	for _, verb := range []string{"resume", "abort", "pause"} {
		run(t, home(verb, "web", "--dry-run=server")...).expect(t, done, "the API server accepts it, and nothing was stored")
	}
	same(t, "what is stored", before, stored())
	run(t, home("resume", "web", "--yes")...).expect(t, done, "the orchestrator in namespace")
	run(t, home("status", "web", "--context", "nowhere")...).expect(t, failed, `has no context "nowhere"`)
	run(t, home("names", "web")...).expect(t, failed, "source of plan web", `and "west" is another cluster`)
	if err := s.destination.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.destination.namespace, Name: "stsmigrate-web"}}); err != nil {
		t.Error(err)
	}
}

// learnsMigrations installs the kind that carries requests to an orchestrator, in the cluster of an end.
func (s *migration) learnsMigrations(on *end) {
	s.t.Helper()
	values, err := deploy.Values("orchestrator")
	if err != nil {
		s.t.Fatal(err)
	}
	all, err := deploy.Render(on.namespace, "", values)
	if err != nil {
		s.t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(all), "\n---\n") {
		var definition unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &definition.Object); err != nil {
			s.t.Fatal(err)
		}
		if definition.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := on.Create(s.t.Context(), &definition); client.IgnoreAlreadyExists(err) != nil {
			s.t.Fatal(err)
		}
	}
	s.eventually("the kind is served", func(ctx context.Context) bool {
		_, err := records.ReadDeclared(ctx, on, on.namespace, "web")
		return err == nil
	})
}
