package draft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
)

// saveable returns an error if the plan cannot be written to its file, or if it would take the place of another document,
// such as the Migration that it is made from.
func (f *Flags) saveable() error {
	if f.Out == "-" {
		return errors.New("--out -: expected a file; to print the plan, use -o yaml")
	}
	found, err := os.Stat(f.Out)
	switch {
	case f.Out == "" || errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--out: %w", err)
	case found.IsDir():
		return fmt.Errorf("--out %s: it is a directory, expected a file", f.Out)
	case !found.Mode().IsRegular() || found.Size() == 0:
		return nil
	}
	raw, err := os.ReadFile(f.Out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if kind, err := plainyaml.Kind(raw); err != nil || kind != plans.PlanKind {
		return fmt.Errorf("--out %s: there is a file of that name which is no plan: nothing was written; give another name", f.Out)
	}
	return nil
}

// Save writes the plan to its file, if there is to be one: all of it or nothing, for the eyes of its owner.
func (f *Flags) Save(p *plans.Plan) (err error) {
	if f.Out == "" {
		return nil
	}
	raw, err := plans.Encode(p)
	if err == nil {
		err = f.saveable() // which it was before the clusters were read
	}
	if err != nil {
		return err
	}
	mode := os.FileMode(0o600)
	switch found, err := os.Lstat(f.Out); {
	case err == nil && !found.Mode().IsRegular(): // a link, or a pipe
		return saving(os.WriteFile(f.Out, raw, mode))
	case err == nil:
		mode = found.Mode().Perm()
	}
	if replace(f.Out, raw, mode) == nil {
		return nil
	}
	return saving(os.WriteFile(f.Out, raw, mode)) // in a folder that may not change, or on a mount of its own
}

// replace puts a file in the place of another one, whole.
func replace(name string, raw []byte, mode os.FileMode) error {
	beside, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = beside.Write(raw)
	if err = errors.Join(err, beside.Chmod(mode), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside.Name()))
	}
	return nil
}

func saving(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing the plan: %w", err)
}

// Next returns the command that carries out the plan in its file, with the flags that find its clusters.
func (f *Flags) Next(found string) string {
	return "stsmigrate apply " + program.Quoted(f.Out) + f.handed + found
}
