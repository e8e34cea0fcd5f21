// Package browser opens pages in a real browser, for tests.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Start starts a browser of its own, which trusts every certificate, or skips the test if there is none. With STSMIGRATE_BROWSER=required a
// missing browser is a failure.
func Start(t *testing.T) context.Context {
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
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync", "ignore-certificate-errors", "disable-dev-shm-usage"} {
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

// Do runs actions in the browser.
func Do(ctx context.Context, t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// Read returns the text that an expression has in the page.
func Read(ctx context.Context, t *testing.T, expression string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Until waits until an expression is true in the page.
func Until(is string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, to *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Poll[bool](is, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second))(ctx, to)
		if err != nil {
			err = fmt.Errorf("%s: %w", is, err)
		}
		return chromedp.Void{}, err
	}
}
