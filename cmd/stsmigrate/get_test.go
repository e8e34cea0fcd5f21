package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// A plan that cannot be read is listed as a row and is no error.
func TestGetListsWhatItCannotRead(t *testing.T) {
	on, config := serve(t, []string{"home"}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "stsmigrate-db", Labels: map[string]string{plans.PlanLabel: "db"}},
		Data:       map[string]string{"plan.yaml": "apiVersion: stsmigrate.dev/v99\nkind: Plan"},
	})
	keep(t, on, "stsmigrate", func(j *journal.Journal) { j.Detached = true })
	got := command(t, "get", "-A", "--kubeconfig", config)
	var rows []string
	for _, line := range strings.Split(strings.TrimSpace(got.out), "\n") {
		rows = append(rows, oneLine(line))
	}
	want := []string{
		"NAMESPACE NAME STATE PROGRESS AGE SOURCE DESTINATION", "mall db Unreadable ? - ? ?", "stsmigrate web Planned 0 of 3 - shop/web in home mall/web in home",
		`mall/db: ConfigMap mall/stsmigrate-db: the Plan is of version "stsmigrate.dev/v99", this program reads "` + plans.APIVersion + `": use the stsmigrate that made it`,
	}
	if got.code != exitDone || strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d\n%s\n%s\nexpected\n%s", got.code, strings.Join(rows, "\n"), got.errOut, strings.Join(want, "\n"))
	}
	if got := command(t, "get", "-n", "stsmigrate", "-o", "json", "--kubeconfig", config); got.code != exitDone || !strings.Contains(got.out, `"state": "Planned"`) {
		t.Errorf("%+v", got)
	}
}

func TestGetSaysWhereThereAreNoPlans(t *testing.T) {
	_, config := serve(t, []string{"home"})
	for _, c := range []struct{ flag, want string }{{"-A", "no plans in any namespace of context home; plans are kept on "}, {"-nmall", "no plans in namespace \"mall\" of context home; plans are kept on the side of their destination"}} {
		if got := command(t, "get", c.flag, "--kubeconfig", config); got.code != exitDone || !strings.HasPrefix(got.out, c.want) || !strings.Contains(got.out, "with --home-context") {
			t.Errorf("%s: %+v, expected %q", c.flag, got, c.want)
		}
	}
}

// How far a plan is, and since when it is under way.
func TestGetSaysHowFarAPlanIs(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "mall", func(j *journal.Journal) {
		j.Epoch, j.Outcome, j.Leg.Lowest = 1, plans.Split, 1
		j.Begun, j.Done = 1+3+2*8, 1+3+2*8
		j.Timeline.Begun = &metav1.Time{Time: time.Now().Add(-3 * time.Hour)}
	})
	for _, form := range [][]string{nil, {"-o", "wide"}} {
		got := command(t, append([]string{"get", "-n", "mall", "--kubeconfig", config}, form...)...)
		if !strings.Contains(oneLine(got.out), "mall web Split 2 of 3 3h shop/web in home") {
			t.Errorf("%v: %+v", form, got)
		}
	}
	got := command(t, "get", "-n", "mall", "--kubeconfig", config, "-o", "jsonpath={.items[0].moved}/{.items[0].ordinals} {.items[0].begun} {.items[0].kind}")
	if !strings.HasPrefix(got.out, "2/3 20") || !strings.HasSuffix(got.out, "Z PlanSummary") {
		t.Errorf("%+v", got)
	}
}

// A list that is watched has a line for each ordinal that arrives. As JSON, each line is an object that says what it is.
func TestAWatchedListShowsProgress(t *testing.T) {
	for form, want := range map[string][2]string{
		"": {"mall web Stopped 0 of 3 -", "mall web Stopped 1 of 3 -"}, "json": {`"kind":"PlanSummary"`, `"moved":1`},
	} {
		on, config := serve(t, []string{"home"})
		p := keep(t, on, "mall", func(j *journal.Journal) { j.Epoch, j.Begun = 1, 1 })
		out, in := io.Pipe()
		a := &app{IOStreams: genericiooptions.IOStreams{Out: in, ErrOut: io.Discard}, now: time.Now}
		ctx, cancel := context.WithCancel(t.Context())
		root := a.command("stsmigrate")
		root.SetArgs([]string{"get", "-w", "-n", "mall", "--kubeconfig", config, "-o", form})
		over := make(chan error, 1)
		go func() { over <- root.ExecuteContext(ctx); _ = in.Close() }()
		lines := bufio.NewScanner(out)
		next := func(want string) {
			for lines.Scan() {
				if form == "json" && !strings.HasPrefix(lines.Text(), `{"apiVersion":"`+plans.APIVersion+`","kind":"PlanSummary","name":"web"`) {
					t.Errorf("no object of a kind: %s", lines.Text())
				}
				if strings.Contains(oneLine(lines.Text()), want) {
					return
				}
			}
			t.Errorf("%q: there is no line with %q", form, want)
		}
		next(want[0])
		err := records.NewStore(on, "mall", "web").Change(t.Context(), p, func(j *journal.Journal) error {
			j.Begun, j.Done = 1+3+8, 1+3+8 // Freeze, Protect for each ordinal, and the wave of web-2
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		next(want[1])
		cancel()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// The forms of kubectl, and what a program reads of a status.
func TestGetAndStatusHaveTheFormsOfKubectl(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "mall", func(j *journal.Journal) {
		j.Block(reasons.VolumeInUse, "volume a is in use")
		j.Downtime = &journal.Downtime{Waves: 1, Total: map[plans.Span]metav1.Duration{plans.Detaching: {Duration: 1500 * time.Millisecond}}}
	})
	for args, want := range map[string]string{
		"get -o name":                                            "plan/web\n",
		"get -o jsonpath={.items[0].reasonID}":                   "VolumeInUse",
		"get -o custom-columns=P:.name,S:.state":                 "P     S\nweb   Blocked\n",
		"get -o jsonpath={.kind}":                                "PlanList",
		"status web -o jsonpath={.apiVersion}/{.kind}":           plans.APIVersion + "/PlanStatus",
		"status web -o jsonpath={.downtime.totalSeconds.detach}": "1.5",
		"status web -o jsonpath={.next[0].why}":                  "continues",
		"status web -o jsonpath={.reasonID}":                     "VolumeInUse",
		"status web -o name":                                     "plan/web\n",
	} {
		got := command(t, append(strings.Fields(args), "-n", "mall", "--kubeconfig", config)...)
		if got.out != want {
			t.Errorf("%s: %+v, expected %q", args, got, want)
		}
	}
	if got := command(t, "get", "-o", "wide", "-n", "mall", "--kubeconfig", config); !strings.Contains(got.out, "REASON") || !strings.Contains(got.out, "VolumeInUse") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "status", "web", "-n", "mall", "--kubeconfig", config); !strings.Contains(got.out, "volume a is in use [VolumeInUse]") {
		t.Errorf("%+v", got)
	}
	if got := command(t, "get", "-o", "xml", "--kubeconfig", "/does/not/exist"); got.code != exitError || !strings.Contains(got.errOut, "expected wide, name, json") {
		t.Errorf("%+v", got)
	}
}
