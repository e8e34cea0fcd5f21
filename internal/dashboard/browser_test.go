package dashboard

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stsmigrate/stsmigrate/test/browser"
)

const table = `document.getElementById("plans").innerText`

// A user who opens the printed address sees all plans, those that need attention first, and sees them change.
func TestThePageShowsPlansAndTheirChanges(t *testing.T) {
	ctx := browser.Start(t)
	b := NewBoard()
	since := clock().Add(-90 * time.Second)
	b.Set(Row{Namespace: "shop", Plan: "web", Source: "shop/web in east", Destination: "shop/web in west", State: "Moving", Moved: 2, Ordinals: 5, InFlight: 1, MaxUnavailable: 2, Since: &since})
	b.Set(Row{Namespace: "shop", Plan: "db", State: "Blocked", Ordinals: 3, MaxUnavailable: 1, Attention: true, Reason: `claim <img src=x onerror="document.title='hacked'"> is in the way`, ReasonID: "SetDiffers", Runbook: "https://example.com/reasons#setdiffers", Next: "`stsmigrate resume db`"})
	b.Set(Row{Namespace: "shop", Plan: "odd", State: "Planned", ReasonID: "odd", Runbook: "javascript:alert(1)"})
	address, token := serve(t, b, nil)
	browser.Do(ctx, t, chromedp.Navigate(address+"/#"+token), browser.Until(table+`.includes("web")`))
	text, title, where := browser.Read(ctx, t, table), browser.Read(ctx, t, "document.title"), browser.Read(ctx, t, "location.href")
	html := browser.Read(ctx, t, `document.querySelectorAll("tbody img, tbody script").length + " " + document.querySelector("tbody tr").className + " " + [...document.querySelectorAll("tbody a")].map((a) => a.href)`)
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
	browser.Do(ctx, t, browser.Until(table+`.includes("5 of 5") && !`+table+`.includes("Blocked") && document.title === "stsmigrate"`))
	b.Remove("shop", "odd")
	b.Remove("shop", "db")
	browser.Do(ctx, t, browser.Until(`!`+table+`.includes("db")`))
	b.Remove("shop", "web")
	browser.Do(ctx, t, browser.Until(`!document.getElementById("none").hidden && document.getElementById("plans").hidden`))
	b.Set(Row{Namespace: "shop", Plan: "mail", State: "Planned", Ordinals: 1, MaxUnavailable: 1})
	b.Set(Row{Namespace: "shop", Plan: "news", State: "Planned", Ordinals: 1, MaxUnavailable: 1})
	browser.Do(
		ctx, t, browser.Until(table+`.includes("news")`), chromedp.SendKeys(chromedp.CSS("#filter"), "mai pla"), browser.Until(table+`.includes("mail") && !`+table+`.includes("news")`),
		chromedp.Reload(), browser.Until(table+`.includes("news")`), // the tab keeps its token
	)
}

// Without a token, or with a wrong one, the page asks for one and shows nothing.
func TestThePageAsksForAToken(t *testing.T) {
	ctx := browser.Start(t)
	b := NewBoard()
	b.Set(Row{Namespace: "shop", Plan: "web", State: "Moving", Ordinals: 1})
	address, token := serve(t, b, nil)
	asks := `!document.getElementById("login").hidden && document.querySelectorAll("tbody tr").length === 0`
	browser.Do(
		ctx, t, chromedp.Navigate(address), browser.Until(asks),
		chromedp.SendKeys(chromedp.CSS("#token"), "wrong"), chromedp.Click(chromedp.CSS("#login button")),
		browser.Until(asks+` && document.getElementById("why").textContent.includes("is not the one")`),
		chromedp.SendKeys(chromedp.CSS("#token"), token), chromedp.Click(chromedp.CSS("#login button")),
		browser.Until(table+`.includes("web") && document.getElementById("login").hidden`),
	)
}

// When the server is away, the page says since when it is not live, and is live again afterwards.
func TestThePageSaysWhenItIsNotLive(t *testing.T) {
	ctx := browser.Start(t)
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
	browser.Do(ctx, t, chromedp.Navigate(address+"/#"+token), browser.Until(link+` === "live"`))
	out <- true
	close(done)
	browser.Do(ctx, t, browser.Until(link+`.startsWith("not live since") && `+table+`.includes("web")`))
	<-out
	browser.Do(ctx, t, browser.Until(link+` === "live"`))
}
