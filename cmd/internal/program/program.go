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

// Build is what a program was built from.
type Build struct {
	Program  string `json:"program"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Writes is the version of the format that it writes.
	Writes string `json:"writes"`
}

// Built returns what a program was built from.
func Built(name, linked, writes string) Build {
	info, _ := debug.ReadBuildInfo()
	return built(name, linked, writes, info)
}

func built(name, linked, writes string, info *debug.BuildInfo) Build {
	vcs := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			vcs[s.Key] = s.Value
		}
	}
	return Build{
		Program: name, Version: version(linked, info), Commit: cmp.Or(vcs["vcs.revision"], "unknown"), Time: vcs["vcs.time"],
		Modified: vcs["vcs.modified"] == "true", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Writes: writes,
	}
}

func about(name, linked, writes string, info *debug.BuildInfo) string {
	b := built(name, linked, writes, info)
	commit := b.Commit
	if b.Time != "" {
		commit += " of " + b.Time
	}
	if b.Modified {
		commit += ", with changes"
	}
	return fmt.Sprintf("%s %s\ncommit: %s\ngo: %s %s\nwrites: %s\n", name, b.Version, commit, b.Go, b.Platform, writes)
}
