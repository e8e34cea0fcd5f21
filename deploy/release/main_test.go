package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"sigs.k8s.io/yaml"
)

// built lays out what `make release` builds, with this test in place of the program.
func built(t *testing.T, mode os.FileMode, at time.Time) *release {
	t.Helper()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	r := &release{Version: "v1.2.3", root: "../..", dist: t.TempDir(), time: time.Unix(1700000000, 0).UTC()}
	for _, p := range []string{"windows_amd64/stsmigrate.exe", "linux_arm64/stsmigrate"} {
		p = filepath.Join(r.dist, "build", p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, self, mode), os.Chtimes(p, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.make(); err != nil {
		t.Fatal(err)
	}
	return r
}

// sums returns the checksums of a release, and verifies each of them.
func sums(t *testing.T, r *release) map[string]string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(r.dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(list)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile(filepath.Join(r.dist, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
			t.Errorf("%s is not what checksums.txt says (%v)", name, err)
		}
		all[name] = sum
	}
	if len(all) != 7 || all["stsmigrate-1.2.3.tgz"] == "" { // two archives, two SBOMs, a manifest, a formula, the chart
		t.Errorf("checksums.txt lists %v", all)
	}
	return all
}

func TestRelease(t *testing.T) {
	r := built(t, 0o755, time.Unix(1, 0))
	t.Run("the same programs give the same bytes", func(t *testing.T) {
		first := sums(t, r)
		for name, sum := range sums(t, built(t, 0o700, time.Unix(1e9, 0))) {
			if first[name] != sum {
				t.Errorf("%s differs", name)
			}
		}
	})
	t.Run("archives", func(t *testing.T) { archives(t, r) })
	t.Run("bill of materials", func(t *testing.T) { bill(t, r) })
	t.Run("krew takes the manifest", func(t *testing.T) { krew(t, r) })
	t.Run("the formula has the archives", func(t *testing.T) { formula(t, r) })
}

// archives checks that the archives contain the program and the licence, and nothing of the machine that
// packed them.
func archives(t *testing.T, r *release) {
	t.Helper()
	for _, a := range r.Archives {
		f, err := os.Open(filepath.Join(r.dist, a.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for files := tar.NewReader(z); ; {
			h, err := files.Next()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %o %d:%d%s%s %d", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.Unix()))
		}
		want := []string{a.Program + " 755 0:0 1700000000", "LICENSE 644 0:0 1700000000", "kubectl_complete-stsmigrate 755 0:0 1700000000"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || !z.ModTime.IsZero() {
			t.Errorf("%s has %q of %s, expected %q", a.Name, got, z.ModTime, want)
		}
	}
}

// bill checks the SBOM against the linker's build information.
func bill(t *testing.T, r *release) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dist, r.Archives[0].Name+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, c := range *b.Components {
		there[c.PackageURL] = true
	}
	info, err := buildinfo.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 || len(there) != len(info.Deps)+1 || !there["pkg:golang/std@"+strings.TrimPrefix(info.GoVersion, "go")] {
		t.Errorf("%d components for %d modules and Go: %v", len(there), len(info.Deps), there)
	}
	for _, m := range info.Deps {
		if !there["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("%s %s is missing", m.Path, m.Version)
		}
	}
	if b.SerialNumber != "" || b.Metadata.Timestamp != "" || b.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("metadata: %q, %+v", b.SerialNumber, b.Metadata)
	}
}

// manifest holds the fields that krew reads.
type manifest struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description string
		Platforms                                        []platform
	}
}

type platform struct {
	Selector         struct{ MatchLabels map[string]string }
	URI, SHA256, Bin string
}

// krew makes the checks of krew before it accepts a manifest (its internal ValidatePlugin and
// validatePlatform), and those that its documentation requires of descriptions and platforms.
func krew(t *testing.T, r *release) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dist, "stsmigrate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(raw, &m); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "stsmigrate" || m.Spec.Version != "v1.2.3" || !strings.HasPrefix(m.Spec.Homepage, "https://") {
		t.Errorf("the manifest begins with %+v", m)
	}
	if s := m.Spec.ShortDescription; s == "" || len(s) > 50 || strings.ContainsAny(s, "\r\n") || strings.HasSuffix(s, ".") {
		t.Errorf("the short description is %q: expected one line of 50 characters and no full stop", s)
	}
	all, seen := sums(t, r), map[string]bool{}
	for _, p := range m.Spec.Platforms {
		seen[p.check(t, all)] = true
	}
	if len(seen) != len(r.Archives) || len(seen) != len(m.Spec.Platforms) {
		t.Errorf("%d platforms, of which %d differ, for %d archives", len(m.Spec.Platforms), len(seen), len(r.Archives))
	}
}

// check verifies a platform and returns the labels that it is selected by.
func (p platform) check(t *testing.T, all map[string]string) string {
	t.Helper()
	labels, name := fmt.Sprint(p.Selector.MatchLabels), path.Base(p.URI)
	if !regexp.MustCompile(`^map\[arch:(amd64|arm64) os:(linux|darwin|windows)\]$`).MatchString(labels) {
		t.Errorf("selector %s", labels)
	}
	if all[name] != p.SHA256 || len(p.SHA256) != 64 || p.URI != "https://github.com/stsmigrate/stsmigrate/releases/download/v1.2.3/"+name {
		t.Errorf("%s has sum %s: expected %s", p.URI, p.SHA256, all[name])
	}
	if (p.Bin == "stsmigrate.exe") != (p.Selector.MatchLabels["os"] == "windows") {
		t.Errorf("%s: bin %s", labels, p.Bin)
	}
	return labels
}

// formula checks that the formula for Homebrew has the address and the sum of each archive that Homebrew installs.
func formula(t *testing.T, r *release) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dist, "stsmigrate.rb"))
	if err != nil {
		t.Fatal(err)
	}
	all, blocks := sums(t, r), regexp.MustCompile(`(?m)^  if OS\.(mac|linux)\? && Hardware::CPU\.(intel|arm)\?
    url "https://github\.com/stsmigrate/stsmigrate/releases/download/v1\.2\.3/(\S+)"
    sha256 "([0-9a-f]{64})"
  end$`).FindAllStringSubmatch(string(raw), -1)
	for _, b := range blocks {
		if name := "stsmigrate_v1.2.3_" + map[string]string{"mac": "darwin", "linux": "linux"}[b[1]] + "_" + map[string]string{"intel": "amd64", "arm": "arm64"}[b[2]] + ".tar.gz"; b[3] != name || all[name] != b[4] {
			t.Errorf("%v: expected %s with the sum %s", b, name, all[name])
		}
	}
	if want := len(r.Archives) - 1; len(blocks) != want || !strings.Contains(string(raw), "\n  version \"1.2.3\"\n") || strings.HasPrefix(string(raw), "#") { // all but Windows
		t.Errorf("%d of %d archives are in the formula:\n%s", len(blocks), want, raw)
	}
}

func TestRefusesWhatIsNoVersion(t *testing.T) {
	for _, version := range []string{"", "087d0e8", "1.2.3", "v1.2", "v01.2.3", "v1.2.3+dirty"} {
		if err := (&release{Version: version}).make(); err == nil || !strings.Contains(err.Error(), "expected one like v1.2.3") {
			t.Errorf("%q: %v", version, err)
		}
	}
}
