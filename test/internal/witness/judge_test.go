package witness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// judged returns a judge of a move of two ordinals in one cluster, at its start.
func judged() *Judge {
	j := NewJudge(Move{Set: "web", Window: 1, Down: 1, Source: east, Dest: west, OneServer: true, Templates: []string{"data"}})
	j.See(0, set(east, 0, 2), false)
	j.See(0, set(west, 2, 0), false)
	j.See(0, pod(east, 0), false)
	j.See(0, pod(east, 1), false)
	j.See(0, promised("a", east, "data-web-0"), false)
	j.See(0, promised("b", east, "data-web-1"), false)
	j.Begin()
	return j
}

// promised returns a volume that is named as its disk is, for a claim.
func promised(disk, namespace, claim string) *corev1.PersistentVolume {
	return volume(disk, func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "sim", VolumeHandle: disk}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
	})
}

// mounting returns a ready pod with its claim.
func mounting(namespace string, o int) *corev1.Pod {
	p := pod(namespace, o)
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name},
	}}}
	return p
}

func TestAPodOnTheDiskOfAnotherOrdinalIsAViolation(t *testing.T) {
	j := judged()
	j.See(0, pod(east, 1), true)
	if got := j.See(0, promised("b", west, "data-web-1"), false); len(got) > 0 {
		t.Errorf("the volume goes along: %v", got)
	}
	other := j.Clone()
	if got := j.See(0, mounting(west, 1), false); len(got) > 0 {
		t.Errorf("it runs on its own disk: %v", got)
	}
	other.See(0, promised("b", west, "data-web-0"), false)
	other.See(0, promised("a", west, "data-web-1"), false)
	want := []string{"S5: pod web-1 of shop-new runs on disk sim/a, and its data is on sim/b"}
	if diff := cmp.Diff(want, other.See(0, mounting(west, 1), false)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestAnOrdinalMoreThanMayBeDownIsAViolation(t *testing.T) {
	j := judged()
	if got := j.See(0, pod(east, 1), true); len(got) > 0 {
		t.Errorf("one may be down: %v", got)
	}
	want := []string{"S2: 2 ordinals are down, at most 1 may be"}
	if diff := cmp.Diff(want, j.See(0, pod(east, 0), true)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// What the copy sees, the first one has not seen.
func TestACopyOfAJudgeJudgesByItself(t *testing.T) {
	j := judged()
	j.Clone().See(0, pod(east, 1), true)
	if got := j.See(0, pod(west, 1), false); len(got) != 1 {
		t.Errorf("the pod is on both sides, and got %v", got)
	}
}
