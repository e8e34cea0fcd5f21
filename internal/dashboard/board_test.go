package dashboard

import (
	"fmt"
	"slices"
	"testing"
)

func names(n News) (out []string) {
	for _, r := range n.Rows {
		out = append(out, r.Plan)
	}
	return out
}

// A reader gets everything first, then only what has changed, and everything again when a row has gone.
func TestAReaderGetsWhatHasChanged(t *testing.T) {
	b := NewBoard()
	last := 0
	expect := func(what string, all bool, want ...string) {
		t.Helper()
		news, version, _ := b.Since(last)
		if got := names(news); !slices.Equal(got, want) || news.All != all {
			t.Errorf("%s: %v, all: %t; expected %v", what, got, news.All, want)
		}
		last = version
	}
	expect("an empty board", true)
	b.Set(Row{Plan: "web", State: "Moving"})
	b.Set(Row{Plan: "db", State: "Moved"})
	b.Set(Row{Plan: "mail", State: "Blocked", Attention: true})
	expect("three rows, the urgent one first", false, "mail", "web", "db")
	_, _, next := b.Since(last)
	b.Set(Row{Plan: "web", State: "Moving"})
	expect("the same row", false)
	select {
	case <-next:
		t.Error("the same row is news")
	default:
	}
	b.Set(Row{Plan: "web", State: "Moving", Moved: 1})
	<-next
	expect("another row", false, "web")
	b.Remove("", "db")
	expect("a row that is gone", true, "mail", "web")
	b.Remove("", "db")
	expect("it is gone already", false)
	b.Replace([]Row{{Plan: "web", State: "Moving", Moved: 1}, {Plan: "new", State: "Planned"}})
	expect("other rows", true, "web", "new")
	b.Replace([]Row{{Plan: "web", State: "Moving", Moved: 2}, {Plan: "new", State: "Planned"}})
	expect("one of them", false, "web")
	last = 0
	expect("another reader", true, "web", "new")
}

func TestManyUseABoard(t *testing.T) {
	b := NewBoard()
	done := make(chan bool)
	for k := range 8 {
		go func() {
			for n := range 100 {
				b.Set(Row{Plan: fmt.Sprint(k), Moved: int32(n)})
				b.Since(n)
			}
			done <- true
		}()
	}
	for range 8 {
		<-done
	}
	if news, _, _ := b.Since(0); len(news.Rows) != 8 || news.Rows[0].Moved != 99 {
		t.Errorf("%+v", news)
	}
}
