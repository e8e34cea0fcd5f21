package plans

import (
	"fmt"
	"time"
)

// Clock returns a moment of the past, for people: the time of the day, and the date too if it was not within the last half
// day.
func Clock(at, now time.Time) string {
	layout := "15:04:05 MST"
	if now.Sub(at) > 12*time.Hour {
		layout = "2006-01-02 15:04:05 MST"
	}
	return at.UTC().Format(layout)
}

// Brief returns a duration that was measured, for people: in one unit or two, such as 42ms, 5.1s, 6m12s or 8h00m.
func Brief(d time.Duration) string {
	switch d = max(d, 0); {
	case d > 0 && d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Forecast returns how long so many known waves let expect for the rest, in words. usual is how long each of them took.
func Forecast(known int, usual, left time.Duration) string {
	if known == 1 {
		return fmt.Sprintf("the first took %s, so about %s left", Brief(usual), Brief(left))
	}
	return fmt.Sprintf("about %s left (usually %s per wave)", Brief(left), Brief(usual))
}
