package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestACacheForgetsWhatIsNewAndLeavesTheUsersAlone(t *testing.T) {
	user := filepath.Join(t.TempDir(), "go-build")
	old := filepath.Join("00", "old-a")
	if err := os.MkdirAll(filepath.Join(user, "00"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(user, old), []byte("compiled before"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := newCache(user)
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(c.dir, "00", "new-d")
	if err := os.WriteFile(fresh, []byte("of a variant"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("what a variant compiled is still there: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(c.dir, old)); string(text) != "compiled before" {
		t.Errorf("the cache has lost what the user's has: %q, %v", text, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(user, old)); string(text) != "compiled before" {
		t.Errorf("the user's cache has changed: %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(user), "*")); err != nil || len(left) != 1 {
		t.Errorf("beside the user's cache is left: %v, %v", left, err)
	}
}
