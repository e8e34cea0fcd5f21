package draft

import (
	"strings"
	"testing"
)

// A kind that is none is said of the side for which the user has named it.
func TestAKindThatIsNoneIsSaidOfItsSide(t *testing.T) {
	for want, named := range map[string][2]string{
		"source: \"deploy\"":      {"deploy", ""},
		"source: \"job\"":         {"job", "deploy"},
		"destination: \"deploy\"": {"sts", "deploy"},
	} {
		for range 20 { // whatever the order of a map
			if err := new(Flags).setKinds(named[0], named[1]); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("%v: %v, expected %s", named, err, want)
			}
		}
	}
}
