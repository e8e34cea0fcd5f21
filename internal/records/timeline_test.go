package records

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

func arrivedAt(p *plans.Plan, seq int) journal.Timeline {
	return journal.Timeline{Waves: []journal.Wave{{
		Seq: seq, Ordinals: plans.Slice{Start: p.Start, Replicas: 1}, To: plans.Destination,
		Left: metav1.NewMicroTime(time.Unix(int64(seq), 0)), Took: []float64{1, 0, 0, 0, 1},
	}}}
}

// Entries are stored once, however often they are sent, and are read together with those of the journal.
func TestATimelineIsStoredBesideTheJournal(t *testing.T) {
	home, p := fake.NewClientBuilder().Build(), planstest.Named(t, "abc")
	store, j := NewStore(home, "mall", "web"), journal.New(p)
	j.Timeline = arrivedAt(p, 30)
	j.Timeline.Stored = true
	for range 2 {
		for _, seq := range []int{10, 20} {
			if err := store.Offload(t.Context(), p, arrivedAt(p, seq)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := store.Timeline(t.Context(), p, j)
	if err != nil || len(got.Waves) != 3 || got.Waves[0].Seq != 10 || got.Waves[2].Seq != 30 {
		t.Errorf("%+v: %v", got, err)
	}
	// That of an earlier plan of the same name is not shown, and is replaced.
	next := planstest.Named(t, "xyz")
	if got, err := store.Timeline(t.Context(), next, emptied(next)); err != nil || len(got.Waves) > 0 {
		t.Errorf("another plan has %+v: %v", got, err)
	}
	if err := store.Offload(t.Context(), next, arrivedAt(next, 5)); err != nil {
		t.Fatal(err)
	}
	if got, _ := store.Timeline(t.Context(), next, emptied(next)); len(got.Waves) != 1 {
		t.Errorf("%+v", got)
	}
}

// emptied returns a journal whose timeline is stored.
func emptied(p *plans.Plan) *journal.Journal {
	j := journal.New(p)
	j.Timeline.Stored = true
	return j
}

// What others have put in the place of a timeline is left alone, by those who write it and by those who delete it.
func TestAStrangeTimelineIsLeftAlone(t *testing.T) {
	p := planstest.Named(t, "abc")
	ours := map[string]string{plans.PlanLabel: "web"}
	for name, strange := range map[string]*corev1.ConfigMap{
		"no label":      {Data: map[string]string{timelineKey: `{"apiVersion":"` + plans.APIVersion + `","kind":"Timeline","plan":"web-abc"}`}},
		"no timeline":   {ObjectMeta: metav1.ObjectMeta{Labels: ours}, Data: map[string]string{"other": "text"}},
		"no JSON":       {ObjectMeta: metav1.ObjectMeta{Labels: ours}, Data: map[string]string{timelineKey: "{"}},
		"later version": {ObjectMeta: metav1.ObjectMeta{Labels: ours}, Data: map[string]string{timelineKey: `{"apiVersion":"stsmigrate.dev/v9","kind":"Timeline","plan":"web-abc"}`}},
		"other content": {ObjectMeta: metav1.ObjectMeta{Labels: ours}, Data: map[string]string{timelineKey: `{"apiVersion":"` + plans.APIVersion + `","kind":"Timeline","plan":"web-abc","waves":[{"seq":-1,"took":[]}]}`}},
	} {
		strange.Name, strange.Namespace = "stsmigrate-web-timeline", "mall"
		home := fake.NewClientBuilder().WithObjects(strange).Build()
		store, j := NewStore(home, "mall", "web"), journal.New(p)
		j.Timeline = arrivedAt(p, 30)
		if got, err := store.Timeline(t.Context(), p, j); err != nil || len(got.Waves) != 1 {
			t.Errorf("%s: of a journal that has everything: %+v, %v", name, got, err)
		}
		j.Timeline.Stored = true
		if err := store.Offload(t.Context(), p, j.Timeline); !errors.As(err, new(ErrUnreadable)) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := store.Timeline(t.Context(), p, j); err == nil || len(got.Waves) != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		var is corev1.ConfigMap
		if err := home.Get(t.Context(), client.ObjectKeyFromObject(strange), &is); err != nil || len(is.Data) != len(strange.Data) || is.Data[timelineKey] != strange.Data[timelineKey] {
			t.Errorf("%s: %v, %v", name, is.Data, err)
		}
		err := store.forget(t.Context(), p, true)
		gone := home.Get(t.Context(), client.ObjectKeyFromObject(strange), &is) != nil
		if recorded := store.labelled(strange); err != nil || gone != recorded {
			t.Errorf("%s: gone is %t: %v", name, gone, err)
		}
	}
}
