package plans

import (
	"errors"
	"strings"
	"testing"
)

func TestAPanicOverAPlanIsAnErrorThatSaysWhere(t *testing.T) {
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"a gate without a kind": {func() error { _ = Gate{}.Kind(); return nil }, "nil pointer dereference, in plans.Gate.Kind (line "},
		"several lines":         {func() error { panic("one\ntwo") }, "a bug of stsmigrate: one, in plans.TestAPanic"},
		"an error":              {func() error { return errors.New("no answer") }, "no answer"},
		"nothing":               {func() error { return nil }, ""},
	} {
		err := func() (err error) {
			defer RecoverPanic(&err)
			return c.do()
		}()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}
