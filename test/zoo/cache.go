package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// cache is a Go build cache that begins with everything that is in the user's. What a variant compiles goes into
// this one, and is removed again: nothing will ask for it a second time, and all variants together are tens of GB.
type cache struct {
	dir  string
	mine map[string]bool // the files of the user's cache, by their paths below dir
}

// userCache returns the folder of the user's build cache.
func userCache(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("where is Go's build cache: %w", err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// newCache returns a cache beside the user's, whose files are links to those of the user's. Close removes it.
func newCache(user string) (*cache, error) {
	dir, err := os.MkdirTemp(filepath.Dir(user), "stsmigrate-zoo-")
	if err != nil {
		return nil, err
	}
	c := &cache{dir: dir, mine: map[string]bool{}}
	err = filepath.WalkDir(user, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		name, err := filepath.Rel(user, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		}
		c.mine[name] = true
		return gone(os.Link(path, filepath.Join(dir, name)))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a copy of the build cache %s: %w", user, err), c.Close())
	}
	return c, nil
}

// forget removes what was added since the cache was made. No build may use it meanwhile.
func (c *cache) forget() error {
	return filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.dir, path)
		if err != nil || c.mine[name] {
			return err
		}
		return os.Remove(path)
	})
}

// Close removes the cache. The user's is as it was.
func (c *cache) Close() error { return os.RemoveAll(c.dir) }

// gone returns err, unless it says that another build has trimmed the file away meanwhile.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
