package access

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stsmigrate/stsmigrate/internal/preflight/checktest"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Who hands a plan to an orchestrator hears of the rights of its account. What that user may do is no matter.
func TestTheRightsOfTheOrchestratorsAccountAreJudged(t *testing.T) {
	const account = "system:serviceaccount:moves:orchestrator"
	for name, c := range map[string]struct {
		may  func(*authorizationv1.ResourceAttributes) bool // nil: who asks may not
		want []string
	}{
		"all of them": {may: func(*authorizationv1.ResourceAttributes) bool { return true }},
		"those of named objects": {may: func(a *authorizationv1.ResourceAttributes) bool {
			return a.Name != "" || !slices.Contains([]string{"persistentvolumes", "persistentvolumeclaims"}, a.Resource) || slices.Contains([]string{"create", "list", "watch"}, a.Verb)
		}},
		"no volumes": {
			may: func(a *authorizationv1.ResourceAttributes) bool {
				return a.Resource != "persistentvolumes" || a.Verb != "create"
			},
			want: []string{
				"WARN ...the source (east)..." + account + " may not create persistentvolumes (cluster-wide), expected...before `stsmigrate apply --detach`...`stsmigrate rbac --plan FILE --side source`",
				"WARN ...the destination (west)..." + account + " may not create persistentvolumes (cluster-wide), expected...`stsmigrate rbac --plan FILE --side destination`",
			},
		},
		"none": {
			may: func(*authorizationv1.ResourceAttributes) bool { return false },
			want: []string{
				"WARN ...the source (east)..." + account + " may not ... more...--side source`",
				"WARN ...the destination (west)..." + account + " may not ... more...--side destination`",
			},
		},
		"who asks may not ask": {
			want: []string{"WARN ...the source...you may not ask what " + account + " may do there", "WARN ...the destination...you may not ask what " + account + " may do there"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := checktest.Estate{Volumes: []string{"{spec: {csi: {driver: disk.example.com, volumeHandle: vol-0}}}"}}.Inspected(t)
			i.Draft, i.Account = true, account
			var lock sync.Mutex
			for _, side := range plans.Sides() {
				whole, _ := i.On[side].(client.WithWatch)
				i.On[side] = interceptor.NewClient(whole, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					lock.Lock()
					defer lock.Unlock()
					review, is := o.(*authorizationv1.SubjectAccessReview)
					if !is || review.Spec.User != account || !slices.Contains(review.Spec.Groups, "system:serviceaccounts:moves") {
						t.Errorf("asked is %T: %+v", o, o)
						return nil
					}
					if c.may == nil {
						return apierrors.NewForbidden(schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", nil)
					}
					review.Status.Allowed = c.may(review.Spec.ResourceAttributes)
					return nil
				}})
			}
			found, err := Permissions(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			checktest.ExpectFindings(t, found, c.want...)
			for _, f := range found {
				if strings.Contains(f.Saw+f.Want, "carry the plan out yourself") {
					t.Errorf("it is about the user: %+v", f)
				}
			}
			if why, err := PodsUnmade(t.Context(), i); why != "" || err != nil {
				t.Errorf("no place is taken since %q, %v", why, err)
			}
		})
	}
}
