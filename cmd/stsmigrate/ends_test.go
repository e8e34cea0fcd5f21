package main

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stsmigrate/stsmigrate/cmd/internal/hints"
	"github.com/stsmigrate/stsmigrate/cmd/internal/reach"
	"github.com/stsmigrate/stsmigrate/cmd/internal/stops"
	"github.com/stsmigrate/stsmigrate/internal/engine"
	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

func ending(mode plans.NameMode) *reach.Target {
	p := &plans.Plan{
		Name: "web", Count: 3, Names: plans.Names{Mode: mode, Service: "web"},
		Source:      plans.Ref{Cluster: "a", Context: "east", Namespace: "shop", Name: "web"},
		Destination: plans.Ref{Cluster: "b", Context: "west", Namespace: "mall", Name: "web"},
	}
	return &reach.Target{Plan: p, Home: &reach.End{Context: "west", Namespace: "stsmigrate"}, Flags: " -n stsmigrate --context west"}
}

// A run that has lost its journal cannot be resumed with the same command, and not everything is recorded.
func TestARunThatFailsNamesTheCommandThatHelps(t *testing.T) {
	for name, c := range map[string]struct {
		err           error
		says, silence string
	}{
		"the journal is gone": {records.ErrNoJournal{}, "to rebuild it: `stsmigrate recover web -n stsmigrate --context west`", "is recorded"},
		"the Lease is taken":  {records.ErrLeaseTaken{}, "to watch it: `stsmigrate status web -n stsmigrate --context west -w`", "is recorded"},
		"anything else":       {errors.New("no route"), "everything written so far is recorded, to resume: `stsmigrate resume web -n stsmigrate --context west`", "recover"},
	} {
		err := (&app{}).conclude(ending(plans.Bridge), nil, plans.Move, engine.Progress{}, stops.Remains{}, c.err)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(strings.Replace(err.Error(), c.err.Error(), "", 1), c.silence) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The process that carried out the plan kept its names until now. The user must learn that no process does so
// from here on.
func TestTheEndOfARunSaysThatNamesHaveToBeKept(t *testing.T) {
	const keep = "`stsmigrate names web -n stsmigrate --context west -w`"
	for name, c := range map[string]struct {
		how  engine.Progress
		said bool
	}{
		"moved":     {engine.Progress{Kind: engine.Finished, Outcome: plans.Moved}, true},
		"split":     {engine.Progress{Kind: engine.Finished, Outcome: plans.Split}, true},
		"paused":    {engine.Progress{Kind: engine.Paused, Reason: "paused"}, true},
		"aborted":   {engine.Progress{Kind: engine.Finished, Outcome: plans.Aborted}, false},
		"finalized": {engine.Progress{Kind: engine.Finished, Outcome: plans.Finalized}, false},
	} {
		for _, mode := range []plans.NameMode{plans.Bridge, plans.NoNames} {
			var out bytes.Buffer
			a := &app{IOStreams: genericiooptions.IOStreams{Out: &out}}
			if err := a.conclude(ending(mode), &journal.Journal{}, plans.Move, c.how, stops.Remains{}, nil); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(out.String(), keep); said != (c.said && mode == plans.Bridge) {
				t.Errorf("%s, names %s: it says %s", name, mode, out.String())
			}
		}
	}
}

// The command that deletes what is left on one side reaches that side, and not the other one, where the claims of these
// names are in use: neither by a context that the kubeconfigs of both sides have, nor by one that the plan was made with
// and that means the other cluster on this machine.
func TestWhatIsLeftIsDeletedOnItsOwnSide(t *testing.T) {
	const admin = "kubernetes admin"
	_, east := serve(t, []string{admin})
	on, west := serve(t, []string{admin})
	uid := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-west"}}
	if err := cmp.Or(on.Delete(t.Context(), uid.DeepCopy()), on.Create(t.Context(), uid)); err != nil {
		t.Fatal(err)
	}
	both, err := clientcmd.LoadFromFile(east)
	if err != nil {
		t.Fatal(err)
	}
	there, err := clientcmd.LoadFromFile(west)
	if err != nil {
		t.Fatal(err)
	}
	both.Clusters["there"] = there.Clusters["it"]
	both.Contexts = map[string]*clientcmdapi.Context{"a": {Cluster: "there", AuthInfo: "me"}, "b": {Cluster: "it", AuthInfo: "me"}}
	one := filepath.Join(t.TempDir(), "both")
	if err := clientcmd.WriteToFile(*both, one); err != nil {
		t.Fatal(err)
	}
	p := ending(plans.NoNames).Plan
	p.APIVersion, p.Kind, p.ID, p.MaxUnavailable, p.Window = plans.APIVersion, plans.PlanKind, "web-abc", 1, 1
	p.Budget = plans.Budget{Source: "web", Destination: "web"}
	p.Source.Cluster, p.Destination.Cluster, p.Source.Context, p.Destination.Context = "uid-of-the-cluster", "uid-west", "a", "b"
	if p.Hash, err = plans.Fingerprinted(p); err != nil {
		t.Fatal(err)
	}
	if err := records.NewStore(on, "mall", "web").Create(t.Context(), p, journal.New(p)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags []string
		want  map[plans.Side]string
	}{
		"two kubeconfigs with one context name": {
			[]string{"--kubeconfig", east, "--to-kubeconfig", west},
			map[plans.Side]string{plans.Source: "kubectl --kubeconfig " + east + " --context 'kubernetes admin' -n shop", plans.Destination: "kubectl --kubeconfig " + west + " --context 'kubernetes admin' -n mall"},
		},
		"contexts that mean the other cluster": {
			[]string{"--kubeconfig", one, "--context", "b", "--to-context", "a"},
			map[plans.Side]string{plans.Source: "kubectl --kubeconfig " + one + " --context b -n shop", plans.Destination: "kubectl --kubeconfig " + one + " --context a -n mall"},
		},
	} {
		var r reach.Flags
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.AddFlags(f)
		if err := f.Parse(append(c.flags, "--to-namespace", "mall")); err != nil {
			t.Fatal(err)
		}
		to, err := r.Stored(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		to.Plan.Claims = []plans.ClaimMove{{Template: "data", Mode: plans.Empty}}
		for side, want := range c.want {
			if got := hints.LeftBehind(to, side); !strings.Contains(got, ": "+want+" delete pvc data-web-0 data-web-1 data-web-2\n") {
				t.Errorf("%s, on the %s: %q, expected %q", name, side, got, want)
			}
		}
		delete(to.Ends, plans.Source)
		if got := hints.LeftBehind(to, plans.Source); got != "" {
			t.Errorf("%s: of a side that is lost it says %q", name, got)
		}
	}
}

// The objects that stay after the end are named, with the commands that delete them.
func TestTheEndOfAPlanNamesWhatStays(t *testing.T) {
	web := ending(plans.NoNames)
	if got, want := hints.Record(web, &journal.Journal{}), "`stsmigrate forget web -n stsmigrate --context west`\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := hints.Record(web, &journal.Journal{KeepNames: true}); got != "" {
		t.Errorf("names are kept by the record, and it says %q", got)
	}
	for gone, flag := range map[bool]string{false: "", true: " --side destination"} {
		want := "When `stsmigrate status web -n stsmigrate --context west` says Finalized, revoke what the orchestrator was granted for it: `stsmigrate revoke web -n stsmigrate --context west" + flag + "`\n"
		if got := hints.Granted(web, plans.Finalize, gone); got != want {
			t.Errorf("got\n%sexpected\n%s", got, want)
		}
	}
}

// An ordinal may run on an empty volume since another writer replaced its claim. The end must not say that all is well.
func TestTheEndNamesTheVolumeThatNoClaimWasBoundTo(t *testing.T) {
	for _, outcome := range []plans.Outcome{plans.Aborted, plans.Finalized} {
		for _, left := range [][]string{nil, {"pv-7"}} {
			var out bytes.Buffer
			a, j := &app{IOStreams: genericiooptions.IOStreams{Out: &out}}, &journal.Journal{Saved: plans.Saved{Left: left}}
			if err := a.conclude(ending(plans.NoNames), j, plans.Abort, engine.Progress{Kind: engine.Finished, Outcome: outcome}, stops.Remains{}, nil); err != nil {
				t.Fatal(err)
			}
			named := strings.Contains(out.String(), "no claim of the set was bound to volume pv-7 at the end")
			before := strings.Contains(out.String(), "is on shop/web in east as it was before.")
			if named != (left != nil) || outcome == plans.Aborted && before != (left == nil) {
				t.Errorf("%s, left %q: it says %s", outcome, left, out.String())
			}
		}
	}
}
