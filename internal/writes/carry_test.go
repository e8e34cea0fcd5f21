package writes

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsNotKnownStaysWhereItBelongs(t *testing.T) {
	for name, tt := range map[string]struct{ raw, known, next, want string }{
		"nothing changes":             {`{"a":1,"new":2}`, `{"a":1}`, `{"a":1}`, `{"a":1,"new":2}`},
		"a field changes":             {`{"a":1,"new":2}`, `{"a":1}`, `{"a":3}`, `{"a":3,"new":2}`},
		"a field comes":               {`{"new":2}`, `{}`, `{"a":3}`, `{"a":3,"new":2}`},
		"a field goes":                {`{"a":1,"new":2}`, `{"a":1}`, `{}`, `{"new":2}`},
		"all around it goes":          {`{"a":{"b":1,"new":2}}`, `{"a":{"b":1}}`, `{}`, `{}`},
		"written in another way":      {`{"a":"1024Mi","b":1}`, `{"a":"1Gi","b":1}`, `{"a":"1Gi","b":2}`, `{"a":"1024Mi","b":2}`},
		"a list that does not change": {`{"l":[{"new":1}],"a":1}`, `{"l":[{}],"a":1}`, `{"l":[{}],"a":2}`, `{"l":[{"new":1}],"a":2}`},
		"an item changes":             {`{"l":[{"a":1,"new":1}]}`, `{"l":[{"a":1}]}`, `{"l":[{"a":2}]}`, `{"l":[{"a":2,"new":1}]}`},
		"named items change places": {
			`{"l":[{"name":"x","a":1,"new":1},{"name":"y","new":2}]}`, `{"l":[{"name":"x","a":1},{"name":"y"}]}`, `{"l":[{"name":"y"},{"name":"x","a":2}]}`,
			`{"l":[{"name":"y","new":2},{"name":"x","a":2,"new":1}]}`,
		},
		"a named item is another": {`{"l":[{"name":"x","new":1}]}`, `{"l":[{"name":"x"}]}`, `{"l":[{"name":"y"}]}`, `{"l":[{"name":"y"}]}`},
		"claim templates": {
			`{"l":[{"metadata":{"name":"x"},"new":1}]}`, `{"l":[{"metadata":{"name":"x"}}]}`, `{"l":[{"metadata":{"name":"x"},"a":1},{"metadata":{"name":"y"}}]}`,
			`{"l":[{"metadata":{"name":"x"},"a":1,"new":1},{"metadata":{"name":"y"}}]}`,
		},
		"an item comes": {`{"l":[{"a":1,"new":1}]}`, `{"l":[{"a":1}]}`, `{"l":[{"a":2},{"a":1}]}`, `{"l":[{"a":2},{"a":1,"new":1}]}`},
		"another type":  {`{"a":{"new":1}}`, `{"a":{}}`, `{"a":"b"}`, `{"a":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(value(t, tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			raw := value(t, tt.raw)
			if diff := cmp.Diff(value(t, tt.want), carried(raw, value(t, tt.known), value(t, tt.next))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if after, err := json.Marshal(raw); err != nil || string(after) != string(before) {
				t.Errorf("the object itself was changed: %s", after)
			}
		})
	}
}

func TestFieldsThatAreNotKnownAreNamed(t *testing.T) {
	got := unknown(value(t, `{"a":{"b":1,"new":2},"l":[{"x":1},{"x":2,"newer":{}}],"nothing":null,"old":{}}`), value(t, `{"a":{"b":1},"l":[{"x":1},{"x":2}]}`), "")
	if want := []string{"a.new", "l[1].newer", "old"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

func value(t *testing.T, text string) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
