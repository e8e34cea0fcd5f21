// Package waiting is what the waiting program of placeholders does. It is of the standard library alone: the program is
// pulled for each node, and is there before anything of the application is.
package waiting

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Name is that of the program, in its image and where it is installed.
const Name = "placeholder"

// Install puts a copy of this program into a directory, for containers that have nothing of their own to run. A copy that is
// there is replaced in one write: a container may run it.
func Install(dir string) (err error) {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(path) //nolint:gosec // this program
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.CreateTemp(dir, "."+Name+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(to.Name())
		}
	}()
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(0o755) // others run it: the containers have users of their own
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", path, dir, err)
	}
	return os.Rename(to.Name(), filepath.Join(dir, Name))
}
