package move_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1alpha1 "sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/yaml"
)

// In clusters with Multi-Cluster Services, pods find each other by ServiceExports. The test acts as their
// implementation: an export becomes valid when the test sets its condition (3335-31).
func TestServicesAreExportedOnRequest(t *testing.T) {
	t.Parallel()
	t.Run("in clusters that learn it", exportedAndAwaited) // first: the clusters must not have the API yet
	t.Run("beside somebody else's", exportLeftAlone)
}

func exportedAndAwaited(t *testing.T) {
	s := newMigration(t, reimport, options{replicas: 2})
	ends := []*end{s.source, s.destination}
	run(t, s.planArgs("--names", "mcs")...).expect(t, blocked, "names", "it does not know ServiceExports", "--names bridge or none")
	for _, on := range ends {
		s.learnsExports(on)
	}
	run(t, s.planArgs("--names", "mcs")...).expect(t, done, "names        mcs",
		"web-1.<id of "+bed.East.Name+">.web."+s.source.namespace+".svc.clusterset.local", "web-1.<id of "+bed.West.Name+">.web.")

	run(t, s.applyArgs("--step-timeout", "2s")...).expect(t, held, "export Service web", "ServiceExport "+s.source.namespace+"/web", "waits for the cluster's Multi-Cluster Services")
	s.sliceIs(s.source, 0, 2) // no ordinal leaves before it can be found
	s.exported(s.source, mcsv1alpha1.ServiceExportConditionConflict)
	run(t, s.args("resume")...).expect(t, held, "conflicts with that of another cluster")
	s.exported(s.source, mcsv1alpha1.ServiceExportConditionValid)
	p := start(t, s.args("resume")...)
	p.until("waiting: ServiceExport " + s.source.namespace + "/web on the destination")
	s.exported(s.destination, mcsv1alpha1.ServiceExportConditionValid)
	p.end().expect(t, done, "moved: 2 ordinals") // the watch wakes it: it ends before the next periodic look
	run(t, s.args("finalize", "--keep-names")...).expect(t, failed, "bridges no names (--names mcs)")
	run(t, s.args("finalize")...).expect(t, done, "stays")
	if s.export(s.source) != nil {
		t.Error("the source's export is left")
	}
	if e := s.export(s.destination); e == nil || len(e.Labels) > 0 {
		t.Errorf("the export of the destination after finalize: %v, expected that it is there, its own", e)
	}
}

// An export that the user created stays. An abort deletes the one that the move created.
func exportLeftAlone(t *testing.T) {
	s := newMigration(t, reimport, options{replicas: 1})
	for _, on := range []*end{s.source, s.destination} {
		s.learnsExports(on)
	}
	s.create(s.source, &mcsv1alpha1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: s.source.namespace, Name: "web"}})
	s.exported(s.source, mcsv1alpha1.ServiceExportConditionValid)
	s.planned("--names", "mcs")
	before, there := s.state(s.source), s.names("destination")
	p := start(t, s.applyArgs()...)
	p.until("destination: export Service web")
	s.exported(s.destination, mcsv1alpha1.ServiceExportConditionValid)
	p.end().expect(t, done, "moved: 1 ordinals")
	run(t, s.args("abort")...).expect(t, done)
	s.asBefore(before, there)
	if s.export(s.source) == nil {
		t.Error("the export that was there before is gone")
	}
	if s.export(s.destination) != nil {
		t.Error("the export that was made for the move is left")
	}
}

// learnsExports installs the API in the cluster of an end.
func (s *migration) learnsExports(on *end) {
	s.t.Helper()
	var definition unstructured.Unstructured
	if err := yaml.Unmarshal(crd.ServiceExportCRD, &definition.Object); err != nil {
		s.t.Fatal(err)
	}
	if err := on.Create(s.t.Context(), &definition); client.IgnoreAlreadyExists(err) != nil {
		s.t.Fatal(err)
	}
	s.eventually("the API is served", func(ctx context.Context) bool {
		return on.List(ctx, &mcsv1alpha1.ServiceExportList{}, client.InNamespace(on.namespace)) == nil
	})
}

func (s *migration) export(on *end) *mcsv1alpha1.ServiceExport {
	s.t.Helper()
	var e mcsv1alpha1.ServiceExport
	if err := on.Get(s.t.Context(), on.key("web"), &e); err != nil {
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
		return nil
	}
	return &e
}

// exported sets one condition on the export of an end, and removes all others.
func (s *migration) exported(on *end, condition mcsv1alpha1.ServiceExportConditionType) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		e := s.export(on)
		if e == nil {
			return false, nil
		}
		e.Status.Conditions = nil
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue, Reason: "Test"})
		return on.Status().Update(ctx, e) == nil, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
