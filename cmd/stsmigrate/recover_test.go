package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/records"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// markedSet returns one side's set of the plan that keep stores.
func markedSet(namespace string, uid types.UID, start, replicas int32) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: uid},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start}},
	}
	p := &plans.Plan{}
	keep := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	plans.Stamp{Plan: "web-abc", Epoch: 4, Seq: 12}.Put(set)
	plans.MarkSet(set, p, plans.Source, plans.Move, plans.Saved{Retention: map[plans.Side]appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		plans.Source: {WhenDeleted: keep, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType},
	}})
	return set
}

// halfway returns a cluster in which one of three ordinals has moved, and a plan that has lost its journal
// or, if all is set, its whole record.
func halfway(t *testing.T, all bool) (on *served, config, file string) {
	t.Helper()
	on, config = serve(t, []string{"home"}, markedSet("shop", "u", 0, 2), markedSet("mall", "v", 2, 1))
	on.kinds["poddisruptionbudgets"] = policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	on.kinds["controllerrevisions"] = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	on.kinds["volumeattachments"] = storagev1.SchemeGroupVersion.WithKind("VolumeAttachment")
	p := keep(t, on, "mall", func(*journal.Journal) {})
	for _, name := range []string{"stsmigrate-web-journal", "stsmigrate-web"} {
		if err := on.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: name}}); err != nil {
			t.Fatal(err)
		}
		if !all {
			break
		}
	}
	return on, config, inFile(t, p)
}

func journalOf(ctx context.Context, on client.Client, p *plans.Plan) (*journal.Journal, error) {
	j, _, err := records.NewStore(on, "mall", "web").Journal(ctx, p)
	return j, err
}

func ofFile(t *testing.T, file string) *plans.Plan {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plans.DecodePlan(raw)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The findings and the resulting journal are shown. The record is written only after a yes, and the plan is
// held then.
func TestALostJournalIsRebuilt(t *testing.T) {
	for _, all := range []bool{true, false} {
		on, config, file := halfway(t, all)
		what := file
		if !all {
			what = "web"
		}
		got := command(t, "recover", what, "-n", "mall", "--kubeconfig", config)
		if got.code != exitError || !strings.Contains(got.errOut, "not a terminal") {
			t.Fatalf("without an answer: %+v", got)
		}
		for _, want := range []string{
			"source: StatefulSet shop/web in home has the ordinals [0..1]", "marked by step 12 of epoch 4, on its Move", "source: PodDisruptionBudget web-stsmigrate does not exist",
			"epoch 104", "a move to the destination", "the next step to be looked at is 2/Grow", "whenDeleted Retain, whenScaled Delete",
		} {
			if !strings.Contains(got.out, want) {
				t.Errorf("it does not show %q:\n%s", want, got.out)
			}
		}
		p := ofFile(t, file)
		if _, err := journalOf(t.Context(), on, p); !errors.As(err, new(records.ErrNoJournal)) {
			t.Fatalf("it was written without an answer: %v", err)
		}
		if got = command(t, "recover", what, "-n", "mall", "--kubeconfig", config, "--yes"); got.code != 0 || !strings.Contains(got.out, "to resume: `stsmigrate resume web") {
			t.Fatalf("%+v", got)
		}
		j, err := journalOf(t.Context(), on, p)
		if err != nil || j.Epoch != 104 || !strings.Contains(j.Blocked, "recovered from marks by ") {
			t.Errorf("%+v (%v)", j, err)
		}
		if got = command(t, "recover", what, "-n", "mall", "--kubeconfig", config, "--yes"); got.code != exitError || !strings.Contains(got.errOut, "the journal of plan web exists (ConfigMap mall/stsmigrate-web-journal), and only a lost journal is recovered") {
			t.Errorf("a journal that is there: %+v", got)
		}
	}
}

// Input that makes no sense is refused before anything is written.
func TestWhatCannotBeRecoveredIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		edit bool
		want string
	}{
		"an edited plan":               {edit: true, want: "the plan was edited after it was made"},
		"a direction of another name":  {args: []string{"--direction", "back"}, want: "expected move, abort or finalize"},
		"a direction against the mark": {args: []string{"--direction", "abort"}, want: "plan web was on direction Move"},
		"a pod of no ordinal":          {args: []string{"--ended", "web-7"}, want: "has the pods web-0..2"},
		"a split above":                {args: []string{"--until-ordinal", "3"}, want: "expected an ordinal from 0 to 2"},
		"no value":                     {args: []string{"--was", "source-retention=Retain"}, want: "expected SIDE-retention=Retain/Delete"},
		"no side":                      {args: []string{"--was", "budget=maxUnavailable=1"}, want: "expected source-... or destination-..."},
		"names that are not kept":      {args: []string{"--keep-names"}, want: "bridges no names"},
	} {
		on, config, file := halfway(t, true)
		if c.edit {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(raw), "maxUnavailable: 1", "maxUnavailable: 2", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := command(t, append([]string{"recover", file, "-n", "mall", "--kubeconfig", config, "--yes"}, c.args...)...)
		if got.code != exitError || !strings.Contains(got.errOut, c.want) {
			t.Errorf("%s: %+v, expected %q", name, got, c.want)
		}
		var all corev1.ConfigMapList
		if err := on.List(t.Context(), &all, client.InNamespace("mall")); err != nil || len(all.Items) > 0 {
			t.Errorf("%s: %d ConfigMaps were written (%v)", name, len(all.Items), err)
		}
	}
}
