package storage

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/planstest"
)

// machine returns a node by another name than n1.
func machine(name string, uid types.UID, ready corev1.ConditionStatus, used ...corev1.UniqueVolumeName) *corev1.Node {
	n := node(ready, used...)
	n.Name, n.UID = name, uid
	return n
}

// Without a record of the pod, its end is proven by the node that its volumes name, or else by all nodes.
func TestWhatIsKnownOfAPodWithoutARecord(t *testing.T) {
	running := pod("web-4", "pod-uid")
	running.Spec.NodeName = "n2"
	never := false
	unattached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &never}}
	inline := attachment()
	inline.Name, inline.Spec.Source = "va-2", storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}
	off := machine("n2", "u2", corev1.ConditionFalse)
	off.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	well, doubtful := machine("n1", "u1", corev1.ConditionTrue), machine("n2", "u2", corev1.ConditionUnknown)
	for name, c := range map[string]struct {
		world []client.Object
		want  plans.Pod
		why   string
	}{
		"the pod is there":                   {[]client.Object{running, well, machine("n2", "u2", corev1.ConditionTrue)}, plans.Pod{UID: "pod-uid", Node: "n2", NodeUID: "u2"}, ""},
		"an attachment names its node":       {[]client.Object{attachment(), well, doubtful}, plans.Pod{Node: "n1", NodeUID: "u1"}, ""},
		"another attachment names no volume": {[]client.Object{inline, well}, plans.Pod{Stopped: "every node of the source is Ready"}, ""},
		"a kubelet reports the volume":       {[]client.Object{machine("n1", "u1", corev1.ConditionTrue, "kubernetes.io/csi/"+disk), doubtful}, plans.Pod{Node: "n1", NodeUID: "u1"}, ""},
		"nothing names a node":               {[]client.Object{well}, plans.Pod{Stopped: "every node of the source is Ready"}, ""},
		"one node is not Ready":              {[]client.Object{well, doubtful}, plans.Pod{}, "node n2 is not Ready"},
		"one node is out of service":         {[]client.Object{well, off}, plans.Pod{Stopped: "every node of the source is Ready"}, ""},
		"no attachment would name the node":  {[]client.Object{well, unattached}, plans.Pod{}, "no volume whose VolumeAttachment would name it"},
	} {
		t.Run(name, func(t *testing.T) {
			on := map[plans.Side]client.Client{plans.Source: fake.NewClientBuilder().WithObjects(c.world...).Build()}
			got, why, err := LastSeen(t.Context(), rebind(), on, plans.Source, 4, at(plans.Vacate).Flight.Volumes)
			if err != nil || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Fatalf("%q (%v), expected %q", why, err, c.why)
			}
			if !strings.HasPrefix(got.Stopped, c.want.Stopped) || (got.Stopped == "") != (c.want.Stopped == "") {
				t.Errorf("stopped: %q, expected %q", got.Stopped, c.want.Stopped)
			}
			planstest.Unread(t, on, func(on map[plans.Side]client.Client) (plans.Observation, error) {
				got, why, err := LastSeen(t.Context(), rebind(), on, plans.Source, 4, at(plans.Vacate).Flight.Volumes)
				return plans.Observation{Reason: got.Stopped + why}, err
			})
			got.Stopped, c.want.Stopped, c.want.Ordinal = "", "", 4
			if got != c.want {
				t.Errorf("%+v, expected %+v", got, c.want)
			}
		})
	}
}
