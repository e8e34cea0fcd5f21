package repo

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain has the tests read the repository from its top.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// short returns the name of a package of this module from its path or its import path: without the module, and without
// internal, where all packages are but those of the charter.
func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module+"/"), "internal/")
}
