package move_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// shares makes all pods of the set mount the same claim.
func shares(set *appsv1.StatefulSet) {
	oneClaim(cluster.SharedClass)(set)
	spec := &set.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "media", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "media"},
	}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "media", MountPath: "/media"})
}

// media returns a claim named media and its volume.
func media(on *end, change func(*corev1.PersistentVolume)) []client.Object {
	pv := handmade(on, "media", func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "files.example.com", Path: "/" + on.namespace}}
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		pv.Spec.StorageClassName = ""
		if change != nil {
			change(pv)
		}
	})
	claim := newClaim("media", pv.Spec.StorageClassName)
	claim.Namespace = on.namespace
	claim.Spec.AccessModes = pv.Spec.AccessModes
	return []client.Object{pv, &claim}
}

// A volume that all ordinals mount is shared with the destination once, BEFORE the first of them moves. At
// the end it belongs to one side only (3335-34).
func TestSharesAVolumeThatThePodTemplateNames(t *testing.T) {
	for n, way := range []string{"finalize", "abort"} {
		t.Run(way, func(t *testing.T) {
			inOneMode(t, n, options{replicas: 2, set: shares, objects: func(s *migration) { s.furnished(s.source, media(s.source, nil)...) }}, func(s *migration) {
				t := s.t
				before, there := s.state(s.source), s.names("destination")
				w := s.watched()
				r := run(t, s.planArgs()...).expect(t, done, "claim media, shared by all ordinals")
				lacks(t, r, "volume media")
				run(t, s.applyArgs("--until-ordinal", "1")...).expect(t, done, "Share", "destination: create volume", "destination: create claim media", "split")
				s.onBothSides("media")
				run(t, s.args("resume")...).expect(t, done, "moved: 2 ordinals")
				run(t, s.args(way)...).expect(t, done, "Unshare", "delete claim media, which is no longer needed", "Retain -> Delete, marks off")
				proper(t, w, 1)
				if way == "abort" {
					s.asBefore(before, there)
				} else {
					s.settled(before)
					s.eventually("the claim of the source is gone", func(context.Context) bool { return s.gone(s.source, &corev1.PersistentVolumeClaim{}, "media") })
				}
			})
		})
	}
}

// onBothSides checks that a claim is bound on both sides, to volumes that are protected.
func (s *migration) onBothSides(name string) {
	s.t.Helper()
	for _, on := range []*end{s.source, s.destination} {
		var c corev1.PersistentVolumeClaim
		var pv corev1.PersistentVolume
		if err := on.Get(s.t.Context(), on.key(name), &c); err != nil || c.Status.Phase != corev1.ClaimBound {
			s.t.Fatalf("claim %s in %s: %s, %v", name, on.namespace, c.Status.Phase, err)
		}
		if err := on.Get(s.t.Context(), client.ObjectKey{Name: c.Spec.VolumeName}, &pv); err != nil {
			s.t.Fatal(err)
		}
		if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.Spec.NFS.Path != "/"+s.source.namespace {
			s.t.Errorf("volume %s: %s, %s", pv.Name, pv.Spec.PersistentVolumeReclaimPolicy, pv.Spec.NFS.Path)
		}
	}
}

// A claim that the user has created on the destination is left unchanged to the end.
func TestLeavesASharedClaimOfTheDestinationAlone(t *testing.T) {
	inBothModes(t, options{replicas: 2, set: shares, objects: func(s *migration) {
		s.furnished(s.source, media(s.source, nil)...)
		if s.mode == rebind {
			s.furnished(s.destination, media(s.destination, nil)...)
			return
		}
		s.furnished(s.destination, media(s.destination, func(pv *corev1.PersistentVolume) { pv.Name += "-west" })...)
	}}, func(s *migration) {
		t := s.t
		s.eventually("the claim is bound", func(ctx context.Context) bool {
			var c corev1.PersistentVolumeClaim
			return s.destination.Get(ctx, s.destination.key("media"), &c) == nil && c.Status.Phase == corev1.ClaimBound
		})
		lacks(t, run(t, s.planArgs()...).expect(t, done), "shared by all ordinals")
		lacks(t, run(t, s.applyArgs()...).expect(t, done), "media")
		run(t, s.args("finalize")...).expect(t, done)
		var here, there corev1.PersistentVolumeClaim
		if err := s.source.Get(t.Context(), s.source.key("media"), &here); err != nil {
			t.Error(err)
		}
		if err := s.destination.Get(t.Context(), s.destination.key("media"), &there); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusesASharedVolumeThatCannotBeOnBothSides(t *testing.T) {
	for name, c := range map[string]struct {
		mode   mode
		change func(*corev1.PersistentVolume)
		says   string
	}{
		"one node only": {reimport, func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}, "pods of both sides mount it at the same time"},
		"a second object for one CSI volume": {rebind, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: cluster.Driver, VolumeHandle: pv.Name}}
		}, "confuses the kubelet"},
		"a folder of a node": {rebind, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}}
		}, "its volume is not an nfs one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMigration(t, c.mode, options{replicas: 1, set: shares, objects: func(s *migration) { s.furnished(s.source, media(s.source, c.change)...) }})
			before := s.versions()
			run(t, s.planArgs()...).expect(t, blocked, "FAIL shared-volumes: claim media, which the pod template names", c.says)
			same(t, "objects", before, s.versions())
		})
	}
}
