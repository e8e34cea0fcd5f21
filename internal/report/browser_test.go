package report

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stsmigrate/stsmigrate/test/browser"
)

// A browser shows the page from a file, without a network: the figures, both pictures with their bars, and text of
// others as text.
func TestABrowserShowsTheReport(t *testing.T) {
	ctx := browser.Start(t)
	p, j, whole := moved(t)
	file := filepath.Join(t.TempDir(), "report.html")
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := New(p, j, whole, nil, true, start.Add(8*time.Hour+70*time.Second)).WriteHTML(to); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	browser.Do(ctx, t, chromedp.Navigate("file://"+file), browser.Until(`document.readyState === "complete"`))
	for what, want := range map[string]string{
		`document.getElementById("state").innerText`:                                        "under way",
		`document.getElementById("peak").innerText`:                                         "2 of 1",
		`"" + document.querySelectorAll("#waves tr").length`:                                "6",
		`"" + document.querySelectorAll("svg").length`:                                      "2",
		`"" + (document.querySelector("svg rect.ready").getBoundingClientRect().width > 5)`: "true",
		`"" + document.scripts.length`:                                                      "0",
		`"" + (document.body.innerText.includes('<script>alert("it")</script>'))`:           "true",
		`"" + (document.documentElement.scrollWidth <= window.innerWidth)`:                  "true",
		`"" + performance.getEntriesByType("resource").length`:                              "0",
	} {
		if got := browser.Read(ctx, t, what); got != want {
			t.Errorf("%s is %q, expected %q", what, got, want)
		}
	}
}
