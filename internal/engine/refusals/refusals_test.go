package refusals

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stsmigrate/stsmigrate/plans"
)

func TestWhatIsRefusedForGoodIsNotTriedForEver(t *testing.T) {
	const patience = 10 * time.Minute
	said := func(words string) error {
		return fmt.Errorf("deleting claim data-web-2: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-web-2", errors.New(words)))
	}
	no, full := said(`User "mover" cannot delete resource "persistentvolumeclaims"`), said("exceeded quota: all")
	wrong, old, gone := apierrors.NewBadRequest("no such field"), apierrors.NewUnauthorized("expired"), apierrors.NewTimeoutError("no answer", 0)
	for _, c := range []struct {
		name    string
		before  []error // a second apart
		pause   time.Duration
		err     error
		renewed bool
		want    bool
	}{
		{"at first", nil, 0, no, false, false},
		{"the fifth time", []error{wrong, wrong, wrong, wrong}, 0, wrong, false, true},
		{"it may pass", []error{no, no, no, no}, 0, no, false, false},
		{"it has not passed", []error{no, no, no, no}, patience, no, false, true},
		{"a quota has refused for a moment", []error{full, full, full, full}, 0, full, false, false},
		{"a quota has refused for a minute", []error{full, full, full, full}, admissionGrace, full, false, true},
		{"it has not passed for a minute", []error{no, no, no, no}, admissionGrace, no, false, false},
		{"nobody knows us, which may pass", []error{old, old, old, old}, 0, old, false, false},
		{"nobody knows us for long", []error{old, old, old, old}, patience, old, false, true},
		{"for another reason each time", []error{no, wrong, no, wrong}, patience, old, false, true},
		{"after an outage", []error{gone, gone, gone, gone, gone}, 0, no, false, false},
		{"with an outage between", []error{no, no, no, no, gone}, 0, no, false, false},
		{"it went well between", []error{no, no, no, no, nil}, 0, no, false, false},
		{"nobody answers", []error{no, no, no, no}, 0, gone, false, false},
		{"the program fails", nil, 0, fmt.Errorf("check nodes: %w", plans.Panic{}), false, true},
		{"nobody waits, and it may pass", []error{no, no, no, no}, 0, no, true, false},
		{"nobody waits, and it has not passed", []error{no, no, no, no}, patience, no, true, true},
		{"nobody waits, and it is new after an outage", []error{gone, gone, gone, gone, gone}, patience, no, true, false},
		{"nobody waits, and it will not pass", []error{wrong, wrong, wrong, wrong}, 0, wrong, true, true},
		{"nobody waits, and credentials are renewed", []error{old, old, old, old}, patience, old, true, false},
	} {
		var r Counter
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, err := range c.before {
			if now = now.Add(time.Second); r.GiveUp(err, Rule{patience, c.renewed}, now) {
				t.Errorf("%s: %v is final too early", c.name, err)
			}
		}
		if got := r.GiveUp(c.err, Rule{patience, c.renewed}, now.Add(c.pause)); got != c.want {
			t.Errorf("%s: %t, expected %t", c.name, got, c.want)
		}
	}
}
