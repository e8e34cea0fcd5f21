// Package program holds the code that the three programs have in common.
package program

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	_ "golang.org/x/crypto/x509roots/fallback" // for a system without authorities
)

// Version returns the version that the linker set, or else the one that Go recorded.
func Version(linked string) string {
	info, _ := debug.ReadBuildInfo()
	return version(linked, info)
}

// About returns what a program was built from, and the version of the format that it writes.
func About(name, linked, writes string) string {
	info, _ := debug.ReadBuildInfo()
	return about(name, linked, writes, info)
}

func version(linked string, info *debug.BuildInfo) string {
	known := ""
	if info != nil {
		known = strings.Trim(info.Main.Version, "()") // (devel)
	}
	return cmp.Or(linked, known, "devel")
}

func about(name, linked, writes string, info *debug.BuildInfo) string {
	vcs := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			vcs[s.Key] = s.Value
		}
	}
	commit := "unknown"
	if vcs["vcs.revision"] != "" {
		commit = vcs["vcs.revision"] + " of " + vcs["vcs.time"]
	}
	if vcs["vcs.modified"] == "true" {
		commit += ", with changes"
	}
	return fmt.Sprintf("%s %s\ncommit: %s\ngo: %s %s/%s\nwrites: %s\n", name, version(linked, info), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, writes)
}
