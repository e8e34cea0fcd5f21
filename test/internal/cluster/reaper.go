package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// reapScript waits for the end of its input, which the kernel closes however the process at the
// other end dies. It then kills every process started from the work folder and deletes the folder.
// It repeats the sweep because kwokctl may be forking a component while it is being killed.
//
// The folder is passed in the environment: as an argument, it would make the sweep find the reaper
// itself.
const reapScript = `
read -r word
[ "$word" = keep ] && exit 0
while :; do
  pids=$(ps -A -ww -o pid= -o args= | while read -r pid args; do
    case $args in "$STSMIGRATE_WORKDIR"/*) echo "$pid" ;; esac
  done)
  [ -n "$pids" ] || break
  kill -9 $pids 2>/dev/null
  sleep 0.05
done
rm -rf "$STSMIGRATE_WORKDIR"
`

// marker is a file that only a cluster's work folder contains. Without it nothing is killed or
// deleted, whatever folder a caller names.
const marker = "stsmigrate-cluster"

// reaper is the process that removes a cluster when the process that started the cluster is gone.
type reaper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func startReaper(dir string) (*reaper, error) {
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil || !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%q is not the work folder of a cluster", dir)
	}
	cmd := exec.Command("sh", "-c", reapScript)
	cmd.Env = append(os.Environ(), "STSMIGRATE_WORKDIR="+dir)
	cmd.Dir = "/"
	// The reaper has its own session: Ctrl-C must reach the starter and not the reaper.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper of %s: %w", dir, err)
	}
	return &reaper{cmd: cmd, pipe: pipe}, nil
}

// keep ends the reaper and leaves the cluster running.
func (r *reaper) keep() error {
	if _, err := io.WriteString(r.pipe, "keep\n"); err != nil {
		return err
	}
	return r.cmd.Wait()
}

// reap removes the cluster and waits until nothing of it is left.
func (r *reaper) reap(ctx context.Context) error {
	if err := r.pipe.Close(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Remove ends every process started from a cluster's work folder and deletes the folder. It ends
// detached clusters. It returns nil if the folder does not exist, and an error if the folder is not
// the work folder of a cluster.
func Remove(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	r, err := startReaper(dir)
	if err != nil {
		return err
	}
	return r.reap(ctx)
}
