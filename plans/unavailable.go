package plans

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ReadUnavailable reads a number of unavailable ordinals as users write it, as in a PodDisruptionBudget: 2, or 25%.
func ReadUnavailable(flag, text string) (intstr.IntOrString, error) {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 || percent && n > 100 {
		return intstr.IntOrString{}, fmt.Errorf("%s %s: expected a number from 1, or a percentage from 1%% to 100%%", flag, text)
	}
	return intstr.Parse(text), nil
}

// Unavailable returns how many of so many ordinals that is, at least 1; 0 for nil. A percentage is rounded up, as in a
// PodDisruptionBudget.
func Unavailable(v *intstr.IntOrString, count int32) int32 {
	if v == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, int(count), true)
	if err != nil { // ReadUnavailable makes no such value
		return 1
	}
	return int32(max(n, 1)) //nolint:gosec // a number of ordinals, or one that was read with 32 bits
}
