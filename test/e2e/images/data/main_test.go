package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
)

func newMember(ordinal string, dirs ...string) *member {
	m := &member{dirs: dirs, files: map[string]*os.File{}, serves: true}
	m.state = State{Ordinal: ordinal, Records: map[string]int{}, Names: map[string]*history.Name{}}
	return m
}

// left closes the open files of a member, as its death does.
func (m *member) left() {
	for _, f := range m.files {
		_ = f.Close()
	}
}

func TestAMemberNoticesWhatAMigrationCouldDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		next   string // the ordinal that gets the volume
		want   string // part of the error, or none
	}{
		{name: "nothing", next: "3"},
		{name: "the volume of another ordinal", next: "4", want: "is the volume of ordinal 3, but this member has ordinal 4"},
		{name: "records that are not what was written", next: "3", want: "record 1 is", change: func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "records"), []byte(line(0)+line(2)), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a last line that was cut off by a kill", next: "3", change: func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "records"), []byte(line(0)+line(1)+line(2)+"3 f00"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		dir := t.TempDir()
		first := newMember("3", dir)
		if err := first.open(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "records"), []byte(line(0)+line(1)+line(2)), 0o600); err != nil {
			t.Fatal(err)
		}
		first.left()
		if c.change != nil {
			c.change(t, dir)
		}
		second := newMember(c.next, dir)
		err := second.open(dir)
		second.left()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
		if err == nil && second.state.Records[dir] != 3 {
			t.Errorf("%s: %d records, expected 3", c.name, second.state.Records[dir])
		}
	}
}

func TestTwoPodsOnOneVolumeAreNoticed(t *testing.T) {
	dir := t.TempDir()
	first, second := newMember("3", dir), newMember("3", dir)
	if err := first.open(dir); err != nil {
		t.Fatal(err)
	}
	defer first.left()
	if err := second.open(dir); err == nil || !strings.Contains(err.Error(), "in use by another pod") {
		t.Errorf("a second member on the volume: %v", err)
	}
}

func TestAVolumeThatWasPutBackIsNoticed(t *testing.T) {
	for ahead, wrong := range map[int]bool{0: false, 1: false, 2: true, -1: true} {
		data, logs := t.TempDir(), t.TempDir()
		m := newMember("3", data, logs)
		m.state.Records[data], m.state.Records[logs] = 100+ahead, 100
		m.compare()
		if wrong != (len(m.state.Wrong) > 0) {
			t.Errorf("%d records more on the first volume: %q", ahead, m.state.Wrong)
		}
	}
}

// A fault must outlive the pod that found it.
func TestWhatIsWrongStaysOnTheVolume(t *testing.T) {
	dir := t.TempDir()
	m := newMember("3", dir)
	m.state.Names["web-3.web"] = &history.Name{}
	m.note("web-3.web", history.ErrWrong)
	m.note("web-3.web", nil)
	if got := newMember("3", dir).readWrong(); len(got) != 1 || !strings.Contains(got[0], history.ErrWrong.Error()) {
		t.Errorf("after a restart: %q", got)
	}
}

func TestSomebodyElseAtANameIsWrong(t *testing.T) {
	server := httptest.NewServer(newMember("4").routes())
	defer server.Close()
	client := &http.Client{Transport: rewritten{server.Listener.Addr().String()}}
	if err := ask(context.Background(), client, "localhost"); err == nil || !strings.Contains(err.Error(), history.ErrWrong.Error()) {
		t.Errorf("ordinal 4 at the name of another: %v", err)
	}
}

// rewritten sends every request to one address.
type rewritten struct{ to string }

func (r rewritten) RoundTrip(q *http.Request) (*http.Response, error) {
	q.URL.Host = r.to
	return http.DefaultTransport.RoundTrip(q)
}
