package models_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

func disk(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: room(), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: cluster.AttachDriver, VolumeHandle: name}},
	}
	return pv
}

func room() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// claimFor is a claim without a class that names a volume, or none.
func claimFor(namespace, name, volume string) *corev1.PersistentVolumeClaim {
	class := ""
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: room()},
	}
	return c
}

// disk makes a volume of the script's class that is reserved for a claim of any time; "" for none.
func (s *stage) disk(name, claim string) {
	s.t.Helper()
	pv := disk(s.name(name))
	pv.Spec.StorageClassName = s.name("class")
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: claim}
	}
	s.add(pv)
}

func (s *stage) claim(name, volume string) {
	s.t.Helper()
	if volume != "" {
		volume = s.name(volume)
	}
	c, class := claimFor(s.namespace, name, volume), s.name("class")
	c.Spec.StorageClassName = &class
	s.add(c)
}

func volume(s *stage, name string) *corev1.PersistentVolume {
	s.t.Helper()
	return get(s, &corev1.PersistentVolume{}, name)
}

// data is the claim of that name.
func data(s *stage) *corev1.PersistentVolumeClaim {
	s.t.Helper()
	return get(s, &corev1.PersistentVolumeClaim{}, "data")
}

func pod(s *stage, name string) *corev1.Pod {
	s.t.Helper()
	return get(s, &corev1.Pod{}, name)
}

// The binder: a claim and a volume that name each other.
func TestBinder(t *testing.T) {
	t.Run("reserved", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "data")
			s.then("a volume that is reserved by name")
			s.claim("data", "a")
			s.then("its claim is made")
			s.remove(data(s))
			s.then("the claim is deleted")
			s.claim("data", "a")
			s.then("the claim is made again")
			s.edit(volume(s, "a"), `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
			s.then("the UID is taken off")
			s.remove(volume(s, "a"))
			s.then("the volume is deleted while it is bound")
			s.remove(data(s))
			s.then("and its claim")
		})
	})
	t.Run("order", func(t *testing.T) {
		play(t, func(s *stage) {
			s.claim("data", "a")
			s.then("a claim whose volume does not exist")
			s.disk("a", "data")
			s.then("the volume comes later")
			s.claim("other", "a")
			s.then("another claim names the volume")
			s.remove(data(s))
			s.then("the claim that has it is deleted")
			s.edit(volume(s, "a"), `{"spec":{"claimRef":null}}`)
			s.then("the volume is set free")
		})
	})
	t.Run("another UID", func(t *testing.T) {
		play(t, func(s *stage) {
			pv := disk(s.name("a"))
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "data", UID: "11111111-1111-1111-1111-111111111111"}
			s.add(pv)
			s.then("a volume for a claim that has never been")
			s.claim("data", "a")
			s.then("a claim of that name")
			s.remove(volume(s, "a"))
			s.then("the volume is deleted")
			s.disk("a", "data")
			s.then("the volume is made again, for any claim of the name")
			s.edit(volume(s, "a"), `{"spec":{"claimRef":{"uid":"11111111-1111-1111-1111-111111111111"}}}`)
			s.then("the volume gets another UID")
		})
	})
	t.Run("lost", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "data")
			s.claim("data", "a")
			s.then("both are bound")
			uid := data(s).UID
			s.remove(volume(s, "a"))
			s.edit(volume(s, "a"), `{"metadata":{"finalizers":null}}`)
			s.then("the volume vanishes")
			s.disk("a", "data")
			s.then("another one of its name comes")
			s.edit(volume(s, "a"), `{"spec":{"claimRef":{"uid":"`+string(uid)+`"}}}`)
			s.then("it gets the UID of the claim")
			s.edit(volume(s, "a"), `{"spec":{"claimRef":null}}`)
			s.then("the reference is taken off a bound volume")
		})
	})
	t.Run("class", func(t *testing.T) {
		play(t, func(s *stage) {
			of := func(class string, o client.Object) {
				switch o := o.(type) {
				case *corev1.PersistentVolume:
					o.Spec.StorageClassName = class
				case *corev1.PersistentVolumeClaim:
					o.Spec.StorageClassName = &class
				}
				s.add(o)
			}
			fast, slow := s.name("fast"), s.name("slow")
			of(slow, disk(s.name("a")))
			of(fast, claimFor(s.namespace, "data", ""))
			s.then("a volume of another class")
			of(fast, claimFor(s.namespace, "named", s.name("a")))
			s.then("a claim of another class names it")
			reserved := disk(s.name("b"))
			reserved.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: s.namespace, Name: "other"}
			of(fast, reserved)
			s.then("a volume of its class that is reserved")
			of(fast, disk(s.name("c")))
			s.then("a free volume of its class")
			of(fast, claimFor(s.namespace, "other", ""))
			s.then("the claim of the reserved one, which names none")
		})
	})
}

// Claims and volumes stay as long as they are used.
func TestProtection(t *testing.T) {
	t.Run("claim", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "data")
			s.claim("data", "a")
			s.then("both are bound")
			s.add(running(s.namespace, "app", "data"))
			s.then("a pod mounts the claim")
			s.remove(data(s))
			s.then("the claim is deleted")
			s.add(running(s.namespace, "late", "data"))
			s.then("another pod names the claim that goes")
			s.remove(pod(s, "app"))
			s.then("the pod is deleted")
		})
	})
	t.Run("pending", func(t *testing.T) {
		play(t, func(s *stage) {
			s.claim("data", "")
			s.add(running(s.namespace, "app", "data"))
			s.then("a pod waits for a claim that is not bound")
			s.remove(data(s))
			s.then("the claim is deleted")
		})
	})
	t.Run("ended", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "data")
			s.claim("data", "a")
			s.add(running(s.namespace, "backup", "data"))
			s.then("a pod mounts the claim")
			p := pod(s, "backup")
			p.Status.Phase, p.Status.Conditions = corev1.PodSucceeded, nil
			s.on.report(p)
			s.then("the pod has ended")
			s.remove(data(s))
			s.then("the claim is deleted")
		})
	})
	t.Run("volume", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "")
			s.disk("b", "data")
			s.claim("data", "b")
			s.then("one is bound")
			s.remove(volume(s, "a"))
			s.remove(volume(s, "b"))
			s.then("both are deleted")
			s.edit(data(s), `{"metadata":{"finalizers":["kubernetes.io/pvc-protection","example.com/held"]}}`)
			s.remove(data(s))
			s.then("the claim is deleted and held")
			s.edit(data(s), `{"metadata":{"finalizers":null}}`)
			s.then("the claim is gone")
		})
	})
}

// A volume stays attached as long as a pod mounts it.
func TestAttachments(t *testing.T) {
	t.Run("pods", func(t *testing.T) {
		play(t, func(s *stage) {
			s.disk("a", "data")
			s.claim("data", "a")
			s.add(running(s.namespace, "app", "data"))
			s.then("a pod mounts the claim")
			s.remove(pod(s, "app"))
			s.then("the pod is deleted")
			s.add(running(s.namespace, "app", "data"))
			s.then("the pod is made again")
			s.edit(pod(s, "app"), `{"metadata":{"finalizers":["example.com/held"]}}`)
			s.remove(pod(s, "app"))
			s.then("the pod is deleted and stays")
			s.edit(pod(s, "app"), `{"metadata":{"finalizers":null}}`)
			s.then("the pod goes")
		})
	})
	t.Run("node", func(t *testing.T) {
		play(t, func(s *stage) {
			lost(s)
			s.remove(pod(s, "app"))
			s.then("the pod is deleted, and its node is not Ready")
			s.edit(get(s, &corev1.Node{}, worker), `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
			s.then("the node is said to be out of service")
		})
	})
	t.Run("forced", func(t *testing.T) {
		play(t, func(s *stage) {
			lost(s)
			s.remove(pod(s, "app"), client.GracePeriodSeconds(0))
			s.then("the pod is deleted by force, and its node reports no volume in use")
		})
	})
}

// node reports whether the node of this script is Ready. In the real cluster it is made first: its kubelet is the script.
func (s *stage) node(ready corev1.ConditionStatus) {
	s.t.Helper()
	name := s.name(worker)
	var n corev1.Node
	if err := s.Get(s.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		n = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}, Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true", cluster.Lost: "true"}}}
		n.Spec.Unschedulable = true
		s.add(&n)
		s.t.Cleanup(func() { _ = here.Delete(context.Background(), &n) })
		s.must(cluster.InstallStorage(s.t.Context(), plane.Config()))
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	s.on.report(&n)
}

// lost has a pod mount a claim on a node that then reports nothing any more.
func lost(s *stage) {
	s.node(corev1.ConditionTrue)
	s.disk("a", "data")
	s.claim("data", "a")
	s.then("both are bound")
	p := running(s.namespace, "app", "data")
	p.Spec.NodeName, p.Annotations = s.name(worker), map[string]string{cluster.Lost: "true"}
	s.add(p)
	s.then("a pod mounts the claim")
	s.node(corev1.ConditionFalse)
}
