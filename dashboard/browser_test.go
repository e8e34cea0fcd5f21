package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browser starts a browser of its own, or skips the test if there is none. With STSMIGRATE_BROWSER=required a
// missing browser is a failure.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const why = "there is no chromium on the PATH, so the page is not opened: apt-get install -y chromium"
		if os.Getenv("STSMIGRATE_BROWSER") == "required" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 800)}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	return ctx
}

// do runs actions in the browser.
func do(ctx context.Context, t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// read returns the text that an expression has in the page.
func read(ctx context.Context, t *testing.T, expression string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// until waits until an expression is true in the page.
func until(is string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Poll[bool](is, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second))(ctx, to)
		if err != nil {
			err = fmt.Errorf("%s: %w", is, err)
		}
		return chromedp.Void{}, err
	}
}

const table = `document.getElementById("plans").innerText`

// A user who opens the printed address sees all plans, those that need attention first, and sees them change.
func TestThePageShowsPlansAndTheirChanges(t *testing.T) {
	ctx := browser(t)
	b := NewBoard()
	since := clock().Add(-90 * time.Second)
	b.Set(Row{Namespace: "shop", Plan: "web", Source: "shop/web in east", Destination: "shop/web in west", State: "Moving", Moved: 2, Ordinals: 5, InFlight: 1, MaxUnavailable: 2, Since: &since})
	b.Set(Row{Namespace: "shop", Plan: "db", State: "Blocked", Ordinals: 3, MaxUnavailable: 1, Attention: true, Reason: `claim <img src=x onerror="document.title='hacked'"> is in the way`, ReasonID: "SetDiffers", Runbook: "https://example.com/reasons#setdiffers", Next: "`stsmigrate resume db`"})
	b.Set(Row{Namespace: "shop", Plan: "odd", State: "Planned", ReasonID: "odd", Runbook: "javascript:alert(1)"})
	address, token := serve(t, b, nil)
	do(ctx, t, chromedp.Navigate(address+"/#"+token), until(table+`.includes("web")`))
	text, title, where := read(ctx, t, table), read(ctx, t, "document.title"), read(ctx, t, "location.href")
	html := read(ctx, t, `document.querySelectorAll("tbody img, tbody script").length + " " + document.querySelector("tbody tr").className + " " + [...document.querySelectorAll("tbody a")].map((a) => a.href)`)
	for _, want := range []string{"2 of 5", "1 of 2", "1m3", "▶ Moving", "✖ Blocked", "shop/web in west", `claim <img src=x onerror="document.title='hacked'"> is in the way`, "next: stsmigrate resume db"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Index(text, "db") > strings.Index(text, "web") || html != "0 attention https://example.com/reasons#setdiffers" || title != "! stsmigrate" || strings.Contains(where, token) {
		t.Errorf("title %q at %q, %s:\n%s", title, where, html, text)
	}
	b.Set(Row{Namespace: "shop", Plan: "db", State: "Moving", Ordinals: 3, MaxUnavailable: 1})
	b.Set(Row{Namespace: "shop", Plan: "web", State: "Moved", Moved: 5, Ordinals: 5, MaxUnavailable: 2})
	do(ctx, t, until(table+`.includes("5 of 5") && !`+table+`.includes("Blocked") && document.title === "stsmigrate"`))
	b.Remove("shop", "odd")
	b.Remove("shop", "db")
	do(ctx, t, until(`!`+table+`.includes("db")`))
	b.Remove("shop", "web")
	do(ctx, t, until(`!document.getElementById("none").hidden && document.getElementById("plans").hidden`))
	b.Set(Row{Namespace: "shop", Plan: "mail", State: "Planned", Ordinals: 1, MaxUnavailable: 1})
	b.Set(Row{Namespace: "shop", Plan: "news", State: "Planned", Ordinals: 1, MaxUnavailable: 1})
	do(
		ctx, t, until(table+`.includes("news")`), chromedp.SendKeys(chromedp.CSS("#filter"), "mai pla"), until(table+`.includes("mail") && !`+table+`.includes("news")`),
		chromedp.Reload(), until(table+`.includes("news")`), // the tab keeps its token
	)
}

// Without a token, or with a wrong one, the page asks for one and shows nothing.
func TestThePageAsksForAToken(t *testing.T) {
	ctx := browser(t)
	b := NewBoard()
	b.Set(Row{Namespace: "shop", Plan: "web", State: "Moving", Ordinals: 1})
	address, token := serve(t, b, nil)
	asks := `!document.getElementById("login").hidden && document.querySelectorAll("tbody tr").length === 0`
	do(
		ctx, t, chromedp.Navigate(address), until(asks),
		chromedp.SendKeys(chromedp.CSS("#token"), "wrong"), chromedp.Click(chromedp.CSS("#login button")),
		until(asks+` && document.getElementById("why").textContent.includes("is not the one")`),
		chromedp.SendKeys(chromedp.CSS("#token"), token), chromedp.Click(chromedp.CSS("#login button")),
		until(table+`.includes("web") && document.getElementById("login").hidden`),
	)
}

// When the server is away, the page says since when it is not live, and is live again afterwards.
func TestThePageSaysWhenItIsNotLive(t *testing.T) {
	ctx := browser(t)
	b := NewBoard()
	b.Set(Row{Namespace: "shop", Plan: "web", State: "Moving", Ordinals: 1})
	done := make(chan struct{})
	out := make(chan bool, 1)
	address, token := serve(t, b, func(s *Server) {
		s.Done = done
		accept := s.Accept
		s.Accept = func(ctx context.Context, token string) error {
			select {
			case <-out:
				out <- true
				return context.DeadlineExceeded
			default:
				return accept(ctx, token)
			}
		}
	})
	const link = `document.getElementById("link").textContent`
	do(ctx, t, chromedp.Navigate(address+"/#"+token), until(link+` === "live"`))
	out <- true
	close(done)
	do(ctx, t, until(link+`.startsWith("not live since") && `+table+`.includes("web")`))
	<-out
	do(ctx, t, until(link+` === "live"`))
}
