package plans

import (
	"strings"
	"testing"
)

func TestAPercentageOfOrdinalsIsRoundedAsInABudget(t *testing.T) {
	for _, c := range []struct {
		text  string
		count int32
		want  int32
	}{{"1", 5, 1}, {"3", 5, 3}, {"25%", 5, 2}, {"50%", 4, 2}, {"1%", 60, 1}, {"100%", 3, 3}, {"30%", 0, 1}} {
		v, err := ReadUnavailable("--max-unavailable", c.text)
		if got := Unavailable(&v, c.count); err != nil || got != c.want {
			t.Errorf("%s of %d: %d, %v, expected %d", c.text, c.count, got, err, c.want)
		}
	}
	if got := Unavailable(nil, 5); got != 0 {
		t.Errorf("no number is %d of 5", got)
	}
}

func TestWhatIsNoNumberOfOrdinalsIsRefused(t *testing.T) {
	for _, text := range []string{"", "0", "-3", "0%", "101%", "x", "1.5", "5 %", "99999999999"} {
		if _, err := ReadUnavailable("--max-unavailable", text); err == nil || !strings.Contains(err.Error(), "--max-unavailable "+text+": expected a number from 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
