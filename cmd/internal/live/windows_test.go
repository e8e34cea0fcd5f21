package live

import (
	"os"
	"os/exec"
	"testing"
)

// The view is built for Windows too, where a process cannot be stopped by a key.
func TestTheViewIsBuiltForWindows(t *testing.T) {
	t.Parallel()
	build := exec.CommandContext(t.Context(), "go", "build", ".")
	build.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
