package storage

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPodMountsTheClaimsThatItNames(t *testing.T) {
	p := pod("backup", "1", "data-web-4", "logs-web-4")
	p.Spec.Volumes = append([]corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}, p.Spec.Volumes...)
	for claim, want := range map[string]bool{"data-web-4": true, "logs-web-4": true, "data-web-5": false, "": false} {
		if Mounts(p, claim) != want {
			t.Errorf("claim %q: expected %t", claim, want)
		}
	}
}

// A binder has not seen a claim that is new. What it makes of one that is older shows on the volume.
func TestAClaimIsPendingForAWhile(t *testing.T) {
	fresh := metav1.NewTime(time.Now()) //nolint:forbidigo // as an API server writes it
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"a new one":           {func(*corev1.PersistentVolumeClaim) {}, true},
		"an old one":          {func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(fresh.Add(-time.Hour)) }, false},
		"one that is bound":   {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }, false},
		"one that is lost":    {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, false},
		"one that is deleted": {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &fresh }, false},
	} {
		claim := claimIn("mall", "new")
		claim.CreationTimestamp, claim.Status.Phase = fresh, corev1.ClaimPending
		c.change(claim)
		if pending(claim) != c.want {
			t.Errorf("%s: expected %t", name, c.want)
		}
	}
}
