package history

import (
	"errors"
	"slices"
	"testing"
)

func TestOnlyAcknowledgedWritesCanBeLost(t *testing.T) {
	var r Recorder
	r.Called(Call{Kind: Write, Key: "log/0/0"}, nil)
	r.Called(Call{Kind: Write, Key: "log/0/1"}, nil)
	r.Called(Call{Kind: Write, Key: "log/0/2"}, errors.New("no answer"))
	r.Called(Call{Kind: Write, Key: "register/1"}, nil)
	r.Called(Call{Kind: Read, Key: "log/0/3"}, nil)
	r.Compare(map[string]bool{"log/0/1": true})
	if s := r.state; s.Acknowledged != 3 || !slices.Equal(s.Lost, []string{"log/0/0"}) || s.Calls != 5 || s.Failures != 1 {
		t.Errorf("%+v", s)
	}
}
