package plans

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAStampBarsWhoeverIsBehindIt(t *testing.T) {
	mine := Stamp{Plan: "web-abc", Epoch: 2, Seq: 10}
	tests := map[string]struct{ annotation, want string }{
		"none":           {"", ""},
		"earlier step":   {"web-abc/2/9", ""},
		"same step":      {"web-abc/2/10", ""},
		"earlier epoch":  {"web-abc/1/99", ""},
		"later step":     {"web-abc/2/11", "another process has taken the plan over"},
		"later epoch":    {"web-abc/3/1", "another process has taken the plan over"},
		"other plan":     {"shop-xyz/1/1", "belongs to plan shop-xyz"},
		"not our format": {"nonsense", "belongs to plan nonsense"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var o corev1.ConfigMap
			if tt.annotation != "" {
				o.Annotations = map[string]string{StampAnnotation: tt.annotation}
			}
			got := mine.Barred(&o)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, expected %q in it", got, tt.want)
			}
		})
	}
}

func TestUnmarkLeavesTheAnnotationsOfOthers(t *testing.T) {
	var o corev1.ConfigMap
	o.Annotations = map[string]string{"example.com/mine": "1"}
	Stamp{Plan: "web-abc"}.Put(&o)
	if !Unmark(&o) || len(o.Annotations) != 1 || Unmark(&o) {
		t.Errorf("left with %v", o.Annotations)
	}
}
