package sets

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/clusters/clusterstest"
	"github.com/stsmigrate/stsmigrate/internal/sets/copies"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// whole returns the scene of a step of the whole plan.
func whole(op plans.Op, from plans.Side, source, destination plans.Slice) *scene {
	s := at(op, source, destination)
	s.moment.Ordinals, s.moment.From = plans.Slice{}, from
	return s
}

// deletes is the retention policy of the user: both are the policy that the plan must change.
func deletes() Retention { return Retention{WhenDeleted: "Delete", WhenScaled: "Delete"} }

// seen lets the plan be made for the source as it is.
func (s *scene) seen() {
	var err error
	if s.plan.Seen.SourceSpec, err = plans.Fingerprinted(s.source.Spec); err != nil {
		panic(err)
	}
}

// asBefore gives the two sets what they have before the plan begins.
func asBefore(s *scene) {
	for _, set := range []*appsv1.StatefulSet{s.source, s.destination} {
		was := deletes()
		set.Annotations, set.Spec.PersistentVolumeClaimRetentionPolicy = nil, &was
	}
}

func TestFreeze(t *testing.T) {
	depends := func(value string) func(*scene) {
		return func(s *scene) {
			s.plan.Dependencies = []plans.Dependency{{Kind: "ConfigMap", Name: "settings"}}
			for namespace, v := range map[string]string{"shop": "ours", "mall": value} {
				s.others = append(s.others, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"key": v}})
			}
		}
	}
	frozen := func() *scene {
		s := whole(plans.Freeze, plans.Source, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		s.seen()
		return s
	}
	updated := func(s *scene) { s.source.Spec.Template.Spec.ServiceAccountName = "admin" }
	looks(t, frozen, func(w Steps) plans.Look { return w.Freeze }, map[string]seen{
		"both sets are marked and keep their claims":    {func(*scene) {}, plans.After, ""},
		"the source is not marked":                      {func(s *scene) { s.source.Annotations = nil }, plans.Before, "source: StatefulSet web: mark it"},
		"the source was updated before it was marked":   {func(s *scene) { s.source.Annotations = nil; updated(s) }, plans.Conflict, "has changed since the plan was made"},
		"the source was updated before the other set":   {func(s *scene) { s.destination = nil; updated(s) }, plans.Conflict, "has changed since the plan was made"},
		"the source was not":                            {func(s *scene) { s.destination = nil }, plans.Before, "destination: create StatefulSet web"},
		"both were updated":                             {updated, plans.After, ""},
		"the source is marked, and deletes claims":      {func(s *scene) { s.source.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = "Delete" }, plans.Before, "source: StatefulSet web: mark it"},
		"the destination is marked, and deletes claims": {func(s *scene) { s.destination.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = "Delete" }, plans.Before, "destination: StatefulSet web: mark it"},
		"the controller has not seen it":                {func(s *scene) { s.source.Status.ObservedGeneration = 2 }, plans.During, "to see generation 3"},
		"the source is another set":                     {func(s *scene) { s.source.UID = "another" }, plans.Conflict, "is not the set that the plan was made for"},
		"the source has another range":                  {func(s *scene) { *s.source.Spec.Replicas = 4 }, plans.Conflict, "make a new plan"},
		"another plan has the source":                   {stamped("web-xyz/1/1"), plans.Conflict, "belongs to plan web-xyz"},
		"the destination is a set of somebody else":     {func(s *scene) { s.destination.Annotations = nil }, plans.Conflict, "was created by another writer"},
		"the destination has pods":                      {func(s *scene) { *s.destination.Spec.Replicas = 1 }, plans.Conflict, "make a new plan"},
		"a copy is the same":                            {depends("ours"), plans.After, ""},
		"a copy of somebody else is another":            {depends("theirs"), plans.Conflict, "differs from that of the source"},
	})
}

// What the first write changes is saved with it, and the set then keeps its claims (S4, S10).
func TestFreezeSavesThePolicyThatItReplaces(t *testing.T) {
	s := whole(plans.Freeze, plans.Source, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	s.plan.Seen.DestinationUID = "destination"
	asBefore(s)
	s.seen()
	w := s.steps()
	for _, side := range plans.Sides() {
		got, err := w.Freeze(t.Context(), s.moment)
		if err != nil || got.Standing != plans.Before {
			t.Fatal(got.Reason, err)
		}
		if got.Undo.Saved.Retention[side] != deletes() || got.Undo.Saved.Slice == nil || *got.Undo.Saved.Slice != (plans.Slice{Start: 5}) {
			t.Errorf("%s: %+v is saved", side, got.Undo.Saved)
		}
		s.moment.Saved.Keep(got.Undo.Saved)
		if err := got.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		set, err := w.Set(t.Context(), side)
		if err != nil || retentionOf(set) != *retain() {
			t.Errorf("%s: %+v, %v", side, set.Spec.PersistentVolumeClaimRetentionPolicy, err)
		}
		if was, err := plans.OriginalOf(set); err != nil || was == nil || *was.Retention != deletes() {
			t.Errorf("%s: noted %+v, %v", side, was, err)
		}
	}
}

// The destination set is created without ordinals and keeps its claims (S1, S4).
func TestADestinationSetStartsWithNothing(t *testing.T) {
	s := whole(plans.Freeze, plans.Source, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	was := deletes()
	s.source.Spec.PersistentVolumeClaimRetentionPolicy = &was
	next, err := DestinationSet(s.source, s.plan)
	if err != nil || plans.SliceOf(next) != (plans.Slice{Start: 5}) || retentionOf(next) != *retain() {
		t.Errorf("%+v, %v", next.Spec, err)
	}
}

// A set is deleted only when nothing depends on it any more, and the other side has everything.
func TestRetire(t *testing.T) {
	moved := func() *scene {
		return whole(plans.Retire, plans.Source, plans.Slice{Start: 2}, plans.Slice{Start: 2, Replicas: 3})
	}
	owned := func(s *scene) {
		s.claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: s.source.UID}}
	}
	looks(t, moved, func(w Steps) plans.Look { return Ending{w.Pair}.Retire }, map[string]seen{
		"nothing depends on it":                {func(*scene) {}, plans.Before, "source: delete StatefulSet web"},
		"it is gone":                           {func(s *scene) { s.source = nil }, plans.After, ""},
		"it goes":                              {func(s *scene) { dying(s.source) }, plans.During, "is being deleted"},
		"it is another set":                    {func(s *scene) { s.source.UID = "another" }, plans.Conflict, "was deleted and recreated"},
		"it has ordinals":                      {func(s *scene) { *s.source.Spec.Replicas = 1 }, plans.Conflict, "expected none"},
		"it has a pod":                         {func(s *scene) { s.runs(s.source, 4) }, plans.During, "pod web-4 of shop/web still exists"},
		"it owns a claim":                      {owned, plans.Conflict, "would be deleted with it"},
		"the other side has lost an ordinal":   {func(s *scene) { *s.destination.Spec.Replicas = 2 }, plans.Conflict, "nothing of the other side is deleted before that"},
		"the other side is gone":               {func(s *scene) { s.destination = nil }, plans.Conflict, "nothing of the other side is deleted before that"},
		"a pod of the other side is not Ready": {func(s *scene) { s.fails("mall/web-3") }, plans.During, "nothing of the source is deleted before that"},
		"a pod there is Ready, not available": {func(s *scene) {
			s.destination.Spec.MinReadySeconds, s.destination.Status.AvailableReplicas = 10, 2
		}, plans.During, "minReadySeconds 10"},
	})
	aborted := func() *scene {
		return whole(plans.Retire, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	}
	looks(t, aborted, func(w Steps) plans.Look { return Ending{w.Pair}.Retire }, map[string]seen{
		"the migration created it":    {func(*scene) {}, plans.Before, "destination: delete StatefulSet web"},
		"it existed before":           {func(s *scene) { s.plan.Seen.DestinationUID = "destination" }, plans.After, ""},
		"the source lacks an ordinal": {func(s *scene) { *s.source.Spec.Replicas = 2 }, plans.Conflict, "nothing of the other side is deleted before that"},
	})
}

// thawed returns the destination set after a part of Thaw has nothing left to do.
func thawed(t *testing.T, s *scene, look func(Steps) plans.Look) *appsv1.StatefulSet {
	t.Helper()
	w := s.steps()
	for range 3 {
		unread(t, w, func(w Steps) (plans.Observation, error) { return look(w)(t.Context(), s.moment) })
		got, err := look(w)(t.Context(), s.moment)
		if err != nil || got.Standing == plans.During || got.Standing == plans.Conflict {
			t.Fatal(got.Reason, err)
		}
		if got.Standing == plans.After {
			break
		}
		if err := got.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set, err := w.Set(t.Context(), plans.Destination)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// ended returns the scene after a move, in which the source had the policy of the user.
func ended() *scene {
	s := whole(plans.Thaw, plans.Source, plans.Slice{Start: 2}, plans.Slice{Start: 2, Replicas: 3})
	s.moment.Saved.Retention = map[plans.Side]Retention{plans.Source: deletes()}
	return s
}

func winner(w Steps) plans.Look { return Ending{w.Pair}.ThawWinner }

func loser(w Steps) plans.Look { return Ending{w.Pair}.ThawLoser }

// What has moved is on the destination and nowhere else when a Move ends (S1, S12).
func TestAMoveEndsOnlyWithBothRangesInPlace(t *testing.T) {
	for lowest, want := range map[int32]string{2: "", 3: "StatefulSet shop/web has the ordinals []"} {
		w := ended().steps()
		if want == "" { // otherwise it may end before its last read
			unread(t, w, func(w Steps) (plans.Observation, error) {
				why, err := Ending{w.Pair}.InPlace(t.Context(), lowest)
				return plans.Observation{Reason: why}, err
			})
		}
		why, err := Ending{w.Pair}.InPlace(t.Context(), lowest)
		if err != nil || (why == "") != (want == "") {
			t.Errorf("lowest %d: %q (%v), expected %q", lowest, why, err, want)
		}
	}
}

// The policy of the user comes back (S15), unless another writer has chosen one since (S12).
func TestThePolicyOfTheUserComesBack(t *testing.T) {
	if set := thawed(t, ended(), winner); retentionOf(set) != deletes() || len(set.Annotations) > 0 {
		t.Errorf("%+v, %v", retentionOf(set), set.Annotations)
	}
	theirs := ended()
	theirs.destination.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = "Delete"
	want := retentionOf(theirs.destination)
	if set := thawed(t, theirs, winner); retentionOf(set) != want || len(set.Annotations) > 0 {
		t.Errorf("%+v, %v", retentionOf(set), set.Annotations)
	}
}

// A destination set that existed before the plan gets back its range and its policy.
func TestASetThatExistedGetsBackWhatItHad(t *testing.T) {
	s := whole(plans.Thaw, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	s.plan.Seen.DestinationUID = "destination"
	s.moment.Saved = plans.Saved{Slice: &plans.Slice{Start: 1}, Retention: map[plans.Side]Retention{plans.Source: *retain(), plans.Destination: deletes()}}
	set := thawed(t, s, loser)
	if set == nil || plans.SliceOf(set) != (plans.Slice{Start: 1}) || retentionOf(set) != deletes() || len(set.Annotations) > 0 {
		t.Errorf("%+v", set)
	}
}

func TestThaw(t *testing.T) {
	looks(t, ended, winner, map[string]seen{
		"both ranges are final":                 {func(*scene) {}, plans.Before, "destination: StatefulSet web: retention policy as before"},
		"the source has an ordinal":             {func(s *scene) { *s.source.Spec.Replicas = 1 }, plans.Conflict, "expected"},
		"the destination lacks an ordinal":      {func(s *scene) { *s.destination.Spec.Replicas = 2 }, plans.Conflict, "expected"},
		"a later process has written it":        {func(s *scene) { s.destination.Annotations[plans.StampAnnotation] = "web-abc/2/1" }, plans.Conflict, "another process has taken the plan over"},
		"its mark was removed, and not by Thaw": {func(s *scene) { s.destination.Annotations = nil }, plans.Conflict, "lost the mark of this plan"},
	})
	looks(t, ended, loser, map[string]seen{
		"a late process created the source again": {func(*scene) {}, plans.Before, "source: delete StatefulSet web"},
		"the source is somebody else's":           {func(s *scene) { s.source.Annotations = nil }, plans.After, ""},
	})
}

// Copies are removed after an abort, and only those (S12).
func TestOnlyCopiesAreRemoved(t *testing.T) {
	for stamp, want := range map[string]seen{
		"web-abc/1/2":  {want: plans.Before, reason: "delete ConfigMap/settings, which the migration copied"},
		"web-abc/1/21": {want: plans.Conflict, reason: "later than this process"},
		"web-xyz/1/2":  {want: plans.After},
		"":             {want: plans.After},
	} {
		aborted := func() *scene {
			return whole(plans.Thaw, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		}
		want.change = func(s *scene) {
			s.plan.Dependencies = []plans.Dependency{{Kind: "ConfigMap", Name: "settings"}}
			c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "settings"}}
			if stamp != "" {
				c.Annotations = map[string]string{plans.StampAnnotation: stamp}
			}
			s.others = append(s.others, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}})
		}
		looks(t, aborted, func(w Steps) plans.Look { return Copies{w.Pair}.Uncopy }, map[string]seen{"stamped " + stamp: want})
	}
}

// A copy whose original another writer has deleted is the only one that is left: an abort does not delete it.
func TestACopyWithoutItsOriginalStays(t *testing.T) {
	s := whole(plans.Thaw, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
	about := metav1.ObjectMeta{Namespace: "mall", Name: "password", Annotations: map[string]string{plans.StampAnnotation: "web-abc/1/2"}}
	s.others = append(s.others, &corev1.Secret{ObjectMeta: about})
	s.plan.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "password"}}
	w := watched(t, s)
	got, err := Copies{w.Pair}.Uncopy(t.Context(), s.moment)
	if want := "destination: keep Secret/password, which does not exist on the source any more, and take our mark off"; err != nil || got.Reason != want {
		t.Fatalf("%s %q (%v), expected %q", got.Standing, got.Reason, err, want)
	}
	if err := got.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen, err := w.Live().Dependency(t.Context(), plans.Destination, s.plan.Dependencies[0])
	if left := seen.Object(); err != nil || left == nil || left.GetAnnotations()[plans.StampAnnotation] != "" {
		t.Errorf("%v is left (%v), expected the Secret without the mark", left, err)
	}
}

// A copy that was changed since it was made is the only one with that content: a password that was rotated while the
// application ran there. An abort keeps it, and says who has written it.
func TestACopyThatWasChangedStays(t *testing.T) {
	data := func(v string) map[string][]byte { return map[string][]byte{"password": []byte(v)} }
	port := func(n int32) corev1.ServiceSpec {
		return corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: n}}}
	}
	pulls := func(names ...string) (out []corev1.LocalObjectReference) {
		for _, n := range names {
			out = append(out, corev1.LocalObjectReference{Name: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		from, have client.Object
		stays      bool
	}{
		"a Secret as it was copied":        {&corev1.Secret{Data: data("old")}, &corev1.Secret{Data: data("old")}, false},
		"a Secret that was rotated":        {&corev1.Secret{Data: data("old")}, &corev1.Secret{Data: data("new")}, true},
		"a Secret that got a key":          {&corev1.Secret{}, &corev1.Secret{Data: data("new")}, true},
		"an original that was rotated":     {&corev1.Secret{Data: data("new")}, &corev1.Secret{Data: data("old")}, true},
		"a ConfigMap that was changed":     {&corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"level": "debug"}}, true},
		"a ConfigMap with other bytes":     {&corev1.ConfigMap{}, &corev1.ConfigMap{BinaryData: data("new")}, true},
		"a Service with another port":      {&corev1.Service{Spec: port(80)}, &corev1.Service{Spec: port(81)}, true},
		"a Service as it was copied":       {&corev1.Service{Spec: port(80)}, &corev1.Service{Spec: port(80)}, false},
		"an account with one more Secret":  {&corev1.ServiceAccount{}, &corev1.ServiceAccount{ImagePullSecrets: pulls("regcred")}, true},
		"an account with generated ones":   {&corev1.ServiceAccount{ImagePullSecrets: pulls("app-dockercfg-a")}, &corev1.ServiceAccount{ImagePullSecrets: pulls("app-dockercfg-b")}, false},
		"an account as it was copied":      {&corev1.ServiceAccount{ImagePullSecrets: pulls("regcred")}, &corev1.ServiceAccount{ImagePullSecrets: pulls("regcred")}, false},
		"an account that mounts its token": {&corev1.ServiceAccount{}, &corev1.ServiceAccount{AutomountServiceAccountToken: new(true)}, true},
	} {
		s := whole(plans.Thaw, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		for o, namespace := range map[client.Object]string{c.from: "shop", c.have: "mall"} {
			o.SetNamespace(namespace)
			o.SetName("app")
		}
		c.have.SetAnnotations(map[string]string{plans.StampAnnotation: "web-abc/1/2"})
		s.others = append(s.others, c.from, c.have)
		s.plan.Dependencies = []plans.Dependency{{Kind: clusters.KindOf(c.have), Name: "app"}}
		w := watched(t, s)
		got, err := Copies{w.Pair}.Uncopy(t.Context(), s.moment)
		says := strings.Contains(got.Reason, "whose content is not that of the source (last written by ")
		if err != nil || got.Standing != plans.Before || says != c.stays {
			t.Fatalf("%s: %s %q (%v)", name, got.Standing, got.Reason, err)
		}
		if strings.Contains(got.Reason, "old") || strings.Contains(got.Reason, "new") {
			t.Errorf("%s: %q has a value of it (S16)", name, got.Reason)
		}
		if err := got.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen, err := w.Live().Dependency(t.Context(), plans.Destination, s.plan.Dependencies[0])
		left := seen.Object()
		if err != nil || (left != nil) != c.stays || left != nil && left.GetAnnotations()[plans.StampAnnotation] != "" {
			t.Errorf("%s: %v is left (%v)", name, left, err)
		}
	}
}

// A copy that another workload of the namespace uses by now stays after an abort, without the mark: its pods would
// lose their account, and those that start anew their Secrets (S12).
func TestACopyThatAnotherWorkloadUsesStays(t *testing.T) {
	regcred := []corev1.LocalObjectReference{{Name: "regcred"}}
	uses := func(namespace, name string, spec corev1.PodSpec) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	}
	idle := planstest.Set(0, 0)
	idle.Namespace, idle.Name, idle.Spec.ServiceName = "mall", "db", "peers"
	idle.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "app"}
	const gone, kept = "destination: delete %, which the migration copied", "destination: keep %, which @ uses too, and take our mark off"
	for name, c := range map[string]struct {
		other client.Object
		kind  string
		name  string
		want  string
		by    string
	}{
		"a pod has its account":                  {uses("mall", "db-0", corev1.PodSpec{ServiceAccountName: "app"}), "ServiceAccount", "app", kept, "pod db-0"},
		"a pod is pulled with its Secret":        {uses("mall", "db-0", corev1.PodSpec{ImagePullSecrets: regcred}), "Secret", "regcred", kept, "pod db-0"},
		"a pod is found by its Service":          {uses("mall", "db-0", corev1.PodSpec{Subdomain: "peers"}), "Service", "peers", kept, "pod db-0"},
		"a set without pods names its account":   {idle, "ServiceAccount", "app", kept, "StatefulSet db"},
		"a set without pods names its Service":   {idle, "Service", "peers", kept, "StatefulSet db"},
		"the account of a set has the Secret":    {idle, "Secret", "regcred", kept, "ServiceAccount/app"},
		"a pod uses something else":              {uses("mall", "db-0", corev1.PodSpec{ServiceAccountName: "db"}), "ServiceAccount", "app", gone, ""},
		"a pod of another namespace has such":    {uses("park", "db-0", corev1.PodSpec{ServiceAccountName: "app"}), "ServiceAccount", "app", gone, ""},
		"a pod of the plan's own set is ending":  {uses("mall", "web-4", corev1.PodSpec{ServiceAccountName: "app"}), "ServiceAccount", "app", gone, ""},
		"the set of the source names it as well": {uses("shop", "web-0", corev1.PodSpec{ServiceAccountName: "app"}), "ServiceAccount", "app", gone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := whole(plans.Thaw, plans.Destination, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
			s.destination.Spec.Template.Spec.ServiceAccountName, s.destination.Spec.ServiceName = "app", "peers"
			about := metav1.ObjectMeta{Namespace: "mall", Name: c.name, Annotations: map[string]string{plans.StampAnnotation: "web-abc/1/2", "mine": "yes"}}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: "app"}, ImagePullSecrets: regcred}
			s.others = append(s.others, c.other)
			switch c.kind {
			case "ServiceAccount":
				account.ObjectMeta = about
			case "Secret":
				s.others = append(s.others, &corev1.Secret{ObjectMeta: about})
			case "Service":
				s.others = append(s.others, &corev1.Service{ObjectMeta: about})
			}
			original := metav1.ObjectMeta{Namespace: "shop", Name: c.name}
			s.others = append(s.others, account, &corev1.Secret{ObjectMeta: original}, &corev1.Service{ObjectMeta: original}, &corev1.ServiceAccount{ObjectMeta: original, ImagePullSecrets: regcred})
			s.plan.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "regcred"}, {Kind: "Service", Name: "peers"}, {Kind: "ServiceAccount", Name: "app", Optional: true}}
			w := watched(t, s)
			got, err := Copies{w.Pair}.Uncopy(t.Context(), s.moment)
			if want := strings.NewReplacer("%", c.kind+"/"+c.name, "@", c.by).Replace(c.want); err != nil || got.Standing != plans.Before || got.Reason != want {
				t.Fatalf("%s %q (%v), expected %q", got.Standing, got.Reason, err, want)
			}
			if err := got.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			seen, err := w.Live().Dependency(t.Context(), plans.Destination, plans.Dependency{Kind: c.kind, Name: c.name})
			have := seen.Object()
			if err != nil || (have == nil) != (c.want == gone) || have != nil && (s.moment.Stamp.Mine(have) || have.GetAnnotations()["mine"] != "yes") {
				t.Errorf("%+v, %v", have, err)
			}
		})
	}
}

// watched returns the steps as the engine has them, with lists that are kept, once the pods of the set have been read.
func watched(t *testing.T, s *scene) Steps {
	t.Helper()
	w, recent, reads := s.steps(), clusters.NewRecent(), &clusters.ReadCache{}
	reads.Clear()
	recent.Keep(func() time.Time { return time.Unix(0, 0) }, clusterstest.Covering{})
	recent.Changed(clusters.ObjectKey{Cluster: plans.Source}, clusters.Change{Idle: true})
	w.On = reads.Clients(s.plan, recent.Clients(s.plan, w.On))
	if pods, err := w.EveryPod(t.Context(), plans.Destination); err != nil || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == "db-0" }) {
		t.Fatalf("%d pods are listed as those of the set, %v", len(pods), err)
	}
	return w
}

// A copied Secret of the source carries no value in an annotation (S16), and an account lists no token of
// another cluster.
func TestACopyHasOnlyWhatAUserWrote(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "the value", plans.StampAnnotation: "web-xyz/1/1", "mine": "yes"}},
		Data:       map[string][]byte{"password": []byte("x")},
	}
	got := copies.Replica(&plans.Plan{Destination: plans.Ref{Namespace: "mall"}}, secret)
	if a := got.GetAnnotations(); len(a) != 1 || a["mine"] != "yes" || got.GetNamespace() != "mall" || !copies.Same(&plans.Plan{}, secret, got) {
		t.Errorf("%+v", got)
	}
}

// Within one cluster a copied Service has the IP families of its original, or pods would find one another by another
// family. Another cluster may not have them, and would refuse the Service: there only the wish for both is kept.
func TestACopiedServiceKeepsItsFamilies(t *testing.T) {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	single, prefer, both := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	with := func(policy *corev1.IPFamilyPolicy, families ...corev1.IPFamily) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, ClusterIPs: []string{corev1.ClusterIPNone}, IPFamilyPolicy: policy, IPFamilies: families,
		}}
	}
	within, between := &plans.Plan{}, &plans.Plan{Destination: plans.Ref{Cluster: "another"}}
	for name, c := range map[string]struct {
		from *corev1.Service
		wish *corev1.IPFamilyPolicy // between clusters
	}{
		"the other family":           {with(&single, v6), nil},
		"the usual family":           {with(&single, v4), nil},
		"both, if they are there":    {with(&prefer, v4, v6), &prefer},
		"both, the other one first":  {with(&prefer, v6, v4), &prefer},
		"both, or no Service at all": {with(&both, v4, v6), &prefer},
		"an ExternalName":            {with(nil), nil},
	} {
		near, ok := copies.Replica(within, c.from).(*corev1.Service)
		if !ok || !equality.Semantic.DeepEqual(near.Spec.IPFamilies, c.from.Spec.IPFamilies) || !equality.Semantic.DeepEqual(near.Spec.IPFamilyPolicy, c.from.Spec.IPFamilyPolicy) {
			t.Errorf("%s, in one cluster: %+v", name, near.Spec)
		}
		far, ok := copies.Replica(between, c.from).(*corev1.Service)
		if !ok || far.Spec.IPFamilies != nil || !equality.Semantic.DeepEqual(far.Spec.IPFamilyPolicy, c.wish) {
			t.Errorf("%s, in another cluster: %+v", name, far.Spec)
		}
		if !copies.Same(within, c.from, near) || !copies.Same(between, c.from, far) {
			t.Errorf("%s: a copy differs from its original", name)
		}
	}
	for name, other := range map[string]*corev1.Service{"one family less": with(&prefer, v6), "another first": with(&prefer, v4, v6), "another policy": with(&both, v6, v4)} {
		if copies.Same(within, with(&prefer, v6, v4), other) || !copies.Same(between, with(&prefer, v6, v4), other) {
			t.Errorf("%s: expected that it differs in one cluster, and not in another", name)
		}
	}
}

// What a user vouches for is a set that is what it was: with the same spec, and with its ordinals.
func TestASetIsTakenBackAsItWas(t *testing.T) {
	ready := func() *scene {
		s := at(plans.Shrink, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		s.moment.Readopt = true
		return s
	}
	unmarked := func(change func(*appsv1.StatefulSet)) func(*scene) {
		return func(s *scene) {
			s.destination.Annotations = nil
			change(s.destination)
		}
	}
	looks(t, ready, func(w Steps) plans.Look { return w.Shrink }, map[string]seen{
		"it is the same": {unmarked(func(*appsv1.StatefulSet) {}), plans.Before, "destination: StatefulSet web: taken back into the plan"},
		"what is down is still up": {func(s *scene) {
			s.moment.Began, s.moment.Flight, s.source.Annotations = true, &plans.Flight{Ordinals: s.moment.Ordinals}, nil
		}, plans.Before, "source: StatefulSet web: taken back into the plan"},
		"it has ordinals":                       {unmarked(func(d *appsv1.StatefulSet) { *d.Spec.Replicas = 1 }), plans.Conflict, "it cannot be taken back into the plan like that"},
		"its pods are others":                   {unmarked(func(d *appsv1.StatefulSet) { d.Spec.Template.Spec.HostNetwork = true }), plans.Conflict, "spec.template differs from the source's"},
		"an ordinal went before its step began": {func(s *scene) { *s.source.Spec.Replicas = 2; s.source.Annotations = nil }, plans.Conflict, "it cannot be taken back into the plan like that"},
		"an ordinal went by the step": {func(s *scene) {
			*s.source.Spec.Replicas, s.source.Annotations, s.moment.Began = 2, nil, true
			s.moment.Flight = &plans.Flight{Ordinals: s.moment.Ordinals, From: plans.Source}
		}, plans.Before, "source: StatefulSet web: taken back into the plan"},
		"its claims are others": {unmarked(func(d *appsv1.StatefulSet) {
			d.Spec.VolumeClaimTemplates = append(d.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "cache"}})
		}), plans.Conflict, "spec.volumeClaimTemplates differs from the source's"},
		"another plan has it":                {func(s *scene) { s.destination.Annotations[plans.StampAnnotation] = "web-xyz/1/1" }, plans.Conflict, "belongs to plan web-xyz"},
		"it is being deleted":                {func(s *scene) { dying(s.destination) }, plans.Conflict, "is being deleted by another writer"},
		"the source is another, with a mark": {func(s *scene) { s.source.UID = "another"; s.source.Spec.ServiceName = "another" }, plans.Conflict, "its spec differs"},
		"the source is gone":                 {func(s *scene) { s.source = nil }, plans.Conflict, "recreate it as it was"},
	})
	arriving := func() *scene {
		s := at(plans.Grow, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 4, Replicas: 1})
		left(s)
		s.moment.Readopt, s.destination.Annotations = true, nil
		return s
	}
	looks(t, arriving, func(w Steps) plans.Look { return w.Grow }, map[string]seen{
		"an ordinal came by the step":           {func(*scene) {}, plans.Before, "destination: StatefulSet web: taken back into the plan"},
		"an ordinal came before its step began": {func(s *scene) { s.moment.Began = false }, plans.Conflict, "it cannot be taken back into the plan like that"},
	})
}

// The mark is taken off every revision that has it, of both sets, and off no other (S15).
func TestTheMarkIsTakenOffTheRevisions(t *testing.T) {
	s := ended()
	s.destination.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, stamp := range map[string]string{"web-1": "web-abc/1/9", "web-2": "", "web-3": "another-plan/1/9"} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "mall", Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.destination, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}}}
		r.Labels = s.destination.Spec.Selector.MatchLabels
		if stamp != "" {
			r.Annotations = map[string]string{plans.StampAnnotation: stamp}
		}
		s.others = append(s.others, r)
	}
	thawed(t, s, func(w Steps) plans.Look { return Ending{w.Pair}.UnmarkRevisions })
	for name, want := range map[string]string{"web-1": "", "web-2": "", "web-3": "another-plan/1/9"} {
		var r appsv1.ControllerRevision
		if err := s.on.Get(t.Context(), client.ObjectKey{Namespace: "mall", Name: name}, &r); err != nil || r.Annotations[plans.StampAnnotation] != want {
			t.Errorf("revision %s: %v, %v", name, r.Annotations, err)
		}
	}
}

// An account lists the Secrets on the destination that were copied there, and no token of the other cluster.
func TestAnAccountListsTheSecretsThatAreCopied(t *testing.T) {
	account := &corev1.ServiceAccount{Secrets: []corev1.ObjectReference{{Name: "password", UID: "1"}, {Name: "app-token"}, {Name: "settings"}}}
	s := ended()
	s.plan.Dependencies = []plans.Dependency{{Kind: "Secret", Name: "password"}, {Kind: "ConfigMap", Name: "settings"}}
	got := Copies{s.steps().Pair}.mountable(account)
	if want := []corev1.ObjectReference{{Name: "password"}}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}
