// Package today selects the share of the cases that a run plays: another one every day.
package today

import (
	"os"
	"strconv"
	"time"
)

// Day returns the number of the day, or the number in the environment variable, which plays the cases of another
// day again.
func Day(variable string) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return int(time.Now().Unix() / int64(24*time.Hour/time.Second))
}
