package volumes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOnlyReadySnapshotsCount(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := func(claim, taken string, ready bool) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}},
			"status": map[string]any{"readyToUse": ready, "creationTime": taken},
		}}
	}
	got := recentlySnapped([]unstructured.Unstructured{
		of("old", "2026-01-01T11:59:59Z", true), of("both", "2025-12-01T00:00:00Z", true), of("both", "2026-01-02T11:00:00Z", true),
		of("unready", "2026-01-02T11:00:00Z", false), of("recent", "2026-01-01T12:00:01Z", true), of("untimed", "", true),
		{Object: map[string]any{}},
	}, now.Sub)
	if diff := cmp.Diff(map[string]bool{"old": false, "both": true, "unready": false, "recent": true}, got); diff != "" {
		t.Error(diff)
	}
}
