package sets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/plans"
)

// leavesLast is the scene of ordinal 4, which has left the range of the source, while its pod is still there.
func leavesLast() *scene {
	s := at(plans.Vacate, plans.Slice{Start: 2, Replicas: 2}, plans.Slice{Start: 5})
	s.runs(s.source, 4)
	return s
}

// comesBack is the scene of an abort: ordinal 3 has left the range of the destination, [4].
func comesBack() *scene {
	s := at(plans.Vacate, plans.Slice{Start: 2, Replicas: 1}, plans.Slice{Start: 4, Replicas: 1})
	s.moment.From, s.moment.Ordinals = plans.Destination, plans.Slice{Start: 3, Replicas: 1}
	s.runs(s.destination, 3)
	return s
}

// two makes the wave two ordinals, 3 and 4.
func two(s *scene) {
	s.moment.Ordinals = plans.Slice{Start: 3, Replicas: 2}
	one := int32(1)
	s.source.Spec.Replicas = &one
}

func parallel(s *scene) { s.source.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func fail(names ...string) func(*scene) {
	return func(s *scene) {
		for _, name := range names {
			s.fails(name)
		}
	}
}

func all(changes ...func(*scene)) func(*scene) {
	return func(s *scene) {
		for _, change := range changes {
			change(s)
		}
	}
}

// waits is the look of a step that waits for the controller.
func waits(context.Context, plans.StepContext) (plans.Observation, error) {
	return plans.Wait(reasons.PodTerminating, "will be deleted by the controller"), nil
}

func tended(w Steps) plans.Look {
	_, vacate := w.Tended(func() time.Time { return time.Unix(0, 0) }, nil, waits)
	return vacate
}

func TestAPodThatItsControllerDoesNotComeToIsDeleted(t *testing.T) {
	const comes = "will be deleted by the controller"
	gone := func(name string) func(*scene) { return func(s *scene) { delete(s.pods, name) } }
	ends := func(name string) func(*scene) { return func(s *scene) { dying(s.pods[name]) } }
	looks(t, leavesLast, tended, map[string]seen{
		"all others are available":                     {all(), plans.During, comes},
		"it is broken, and nothing else":               {fail("shop/web-4"), plans.During, comes},
		"another one is broken":                        {fail("shop/web-4", "shop/web-2"), plans.Before, "source: delete pod web-4, which is outside the range of its set: the set's controller waits, as pod web-2 is  and not Ready"},
		"another one is missing":                       {all(fail("shop/web-4"), gone("shop/web-3")), plans.Before, "pod web-3 does not exist yet"},
		"another one is terminating":                   {all(fail("shop/web-4"), ends("shop/web-3")), plans.Before, "pod web-3 is terminating"},
		"another one is broken, and there is no order": {all(parallel, fail("shop/web-4", "shop/web-2")), plans.During, comes},
		"another one cannot be made":                   {all(parallel, fail("shop/web-4"), gone("shop/web-2")), plans.Before, "pod web-2 does not exist yet"},
		"it serves, and another one is broken":         {fail("shop/web-2"), plans.During, "without it 2 ordinals would be unavailable, and at most 1 may be: it stays until that one is available; `abort` goes back"},
		"it is terminating":                            {all(fail("shop/web-2", "shop/web-4"), ends("shop/web-4")), plans.During, comes},
		"the controller has not seen the range":        {all(fail("shop/web-4", "shop/web-2"), func(s *scene) { s.source.Generation++ }), plans.During, comes},
		"it is in the range":                           {all(fail("shop/web-4", "shop/web-2"), func(s *scene) { *s.source.Spec.Replicas = 3 }), plans.During, comes},
		"it is not the set's":                          {all(fail("shop/web-4", "shop/web-2"), func(s *scene) { s.pods["shop/web-4"].OwnerReferences = nil }), plans.During, comes},
		"the set is not the plan's":                    {all(fail("shop/web-4", "shop/web-2"), func(s *scene) { s.source.Annotations = nil }), plans.During, comes},
		"two go, and both are broken":                  {all(two, fail("shop/web-3", "shop/web-4")), plans.Before, "delete pod web-4, which is outside the range of its set: the set's controller waits, as pod web-3, which goes too, is"},
		"two go, and the higher one is broken":         {all(two, fail("shop/web-4")), plans.During, comes},
		"two go, and the lower one is broken":          {all(two, fail("shop/web-3")), plans.During, comes},
		"two go, and the higher one ends":              {all(two, fail("shop/web-3"), ends("shop/web-4")), plans.During, comes},
		"two go, one ends, and another one is broken":  {all(two, fail("shop/web-3", "shop/web-2"), ends("shop/web-4")), plans.Before, "delete pod web-3"},
	})
	looks(t, comesBack, tended, map[string]seen{
		"it serves, and another one is broken": {fail("mall/web-4"), plans.During, "until the user allows more with --max-unavailable 2"},
		"the user allows more":                 {all(fail("mall/web-4"), func(s *scene) { s.moment.Allowed = 2 }), plans.Before, "destination: delete pod web-3"},
		"one of the other side is broken too":  {all(fail("mall/web-4", "shop/web-2"), func(s *scene) { s.moment.Allowed = 2 }), plans.During, "without it 3 ordinals would be unavailable"},
		"both are broken":                      {fail("mall/web-3", "mall/web-4"), plans.Before, "delete pod web-3"},
	})
}

func TestADeletionThatIsNotAllowedIsLeftToTheUserForAWhile(t *testing.T) {
	s := leavesLast()
	fail("shop/web-2", "shop/web-4")(s)
	s.plan.Source.Context = "old"
	w := s.steps()
	deleted := 0
	inner, _ := s.on.(client.WithWatch)
	on := interceptor.NewClient(inner, interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		deleted++
		var options client.DeleteOptions
		options.ApplyOptions(opts)
		if p := options.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil || options.GracePeriodSeconds != nil {
			t.Errorf("the deletion is not of exactly this pod, with its own grace period: %+v", options)
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("no rule allows it"))
	}})
	w.On[plans.Source] = on
	now := time.Unix(0, 0)
	look := stranded{w, func() time.Time { return now }, map[types.UID]denial{}}.look(reasons.PodTerminating, releases, waits)
	for _, want := range []int{1, 1, 2} {
		got, err := look(t.Context(), s.moment)
		if err != nil {
			t.Fatal(err)
		}
		if got.Standing == plans.Before {
			if err := got.Write(t.Context()); err != nil {
				t.Error(err)
			}
			got, _ = look(t.Context(), s.moment)
		}
		if deleted != want || got.ID != reasons.PodStranded || !strings.Contains(got.Reason, "no rule allows it): kubectl --context old -n shop delete pod web-4") {
			t.Errorf("%d deletions, expected %d: %+v", deleted, want, got)
		}
		now = now.Add(40 * time.Second)
	}
}

// A pod that its set does not make yet waits for another one.
func TestTheWaitForAPodNamesTheOneBelowIt(t *testing.T) {
	looks(t, func() *scene {
		s := at(plans.Grow, plans.Slice{Start: 2, Replicas: 3}, plans.Slice{Start: 5})
		left(s)
		s.moment.From, s.moment.Flight.From = plans.Destination, plans.Destination
		delete(s.pods, "shop/web-4")
		return s
	}, func(w Steps) plans.Look { return w.Grow }, map[string]seen{
		"all below it are available":          {func(*scene) {}, plans.During, "pod web-4 of shop/web does not exist yet"},
		"one is not":                          {fail("shop/web-3"), plans.During, "does not exist yet; its set makes it when all pods below it are available, and pod web-3 is"},
		"one is not, and there is no order":   {all(parallel, fail("shop/web-3")), plans.During, "pod web-4 of shop/web does not exist yet"},
		"one is not, and it exists by itself": {all(fail("shop/web-3"), func(s *scene) { s.runs(s.source, 4); s.fails("shop/web-4") }), plans.During, "web-4 of shop/web is"},
	})
}
