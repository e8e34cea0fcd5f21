package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Before its question, finalize says who would make the source set again. A side that it does not reach is no reason
// against the end, and a source that is gone makes nothing again.
func TestFinalizeSaysWhoWouldMakeTheSetAgain(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
	}}
	on := func(objects ...client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(clusters.Scheme()).WithObjects(objects...).Build()
	}
	for name, c := range map[string]struct {
		lost, gone   bool
		says, stderr string
	}{
		"a release":          {says: "Helm release shop/web"},
		"a side that is far": {lost: true, stderr: "could not be looked at: no route"},
		"a source gone":      {gone: true},
	} {
		var out, errs bytes.Buffer
		a := &app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errs}}
		to := ending(plans.NoNames)
		to.On = clusters.Clusters{plans.Source: on(set), plans.Destination: on()}
		if c.lost {
			to.Lost = map[plans.Side]error{plans.Source: errors.New("no route")}
		}
		j := &journal.Journal{}
		j.Assurances.SourceGone = c.gone
		tellEnding(t.Context(), a, to, j, false)
		if !strings.Contains(out.String(), c.says) || !strings.Contains(errs.String(), c.stderr) || c.says == "" && out.Len() > 0 || c.stderr == "" && errs.Len() > 0 {
			t.Errorf("%s: it says %q, and on standard error %q", name, out.String(), errs.String())
		}
	}
}
