// Command release builds the published files of a version from the programs that `make release` has built: an
// archive and an SBOM for each platform, the manifest for krew, the formula for Homebrew, and checksums. The same programs give the
// same bytes.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

func main() {
	var r release
	var epoch int64
	flag.StringVar(&r.Version, "version", "", "the version, like v1.2.3")
	flag.StringVar(&r.root, "root", ".", "the repository")
	flag.StringVar(&r.dist, "dist", "dist", "where programs are, as build/OS_ARCH/PROGRAM, and where the rest is put")
	flag.Int64Var(&epoch, "epoch", 0, "when the commit was made, in seconds: the time of every file")
	flag.Parse()
	r.time = time.Unix(epoch, 0).UTC()
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "error: "+err.Error())
		os.Exit(1)
	}
}

// release is one version; the template of the manifest reads it.
type release struct {
	Version  string
	Archives []archive

	root, dist string
	time       time.Time
}

// archive is the archive for one platform.
type archive struct {
	OS, Arch, Program string // Program has .exe on Windows
	Name, SHA256      string
}

func (r *release) make() error {
	if !regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`).MatchString(r.Version) {
		return fmt.Errorf("the version is %q: expected one like v1.2.3; tag the commit, or say VERSION=v0.0.0-rc.1", r.Version)
	}
	programs, err := filepath.Glob(filepath.Join(r.dist, "build", "*_*", "*"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("there are no programs in %s", filepath.Join(r.dist, "build"))
	}
	slices.Sort(programs)
	for _, path := range programs {
		a, err := r.pack(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.Archives = append(r.Archives, a)
	}
	krew, brew := filepath.Join("krew", "stsmigrate.yaml"), filepath.Join("homebrew", "stsmigrate.rb")
	if err := errors.Join(r.fill(krew), r.fill(brew), r.chart()); err != nil {
		return err
	}
	return r.checksums()
}

// completion is the program that kubectl runs to complete the words of the plugin.
const completion = "kubectl_complete-stsmigrate"

// pack creates the archive of a program, and its SBOM.
func (r *release) pack(path string) (archive, error) {
	system, arch, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "_")
	a := archive{OS: system, Arch: arch, Program: filepath.Base(path)}
	a.Name = fmt.Sprintf("stsmigrate_%s_%s_%s.tar.gz", r.Version, system, arch)
	program, err := os.ReadFile(path)
	if err != nil {
		return archive{}, err
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return archive{}, err
	}
	complete, err := os.ReadFile(filepath.Join(r.root, "deploy", "completion", completion))
	if err != nil {
		return archive{}, err
	}
	content, err := tarball(r.time, file{a.Program, 0o755, program}, file{"LICENSE", 0o644, license}, file{completion, 0o755, complete})
	if err != nil {
		return archive{}, err
	}
	a.SHA256 = fmt.Sprintf("%x", sha256.Sum256(content))
	bill, err := sbom(path, r.Version)
	return a, errors.Join(err,
		os.WriteFile(filepath.Join(r.dist, a.Name), content, 0o644),
		os.WriteFile(filepath.Join(r.dist, a.Name+".cdx.json"), bill, 0o644))
}

// Number returns the version without its v.
func (r *release) Number() string { return strings.TrimPrefix(r.Version, "v") }

// Brew returns the condition of a Homebrew formula for the platform of an archive, or "" where there is no Homebrew.
func (a archive) Brew() string {
	system, arch := map[string]string{"darwin": "mac?", "linux": "linux?"}[a.OS], map[string]string{"amd64": "intel?", "arm64": "arm?"}[a.Arch]
	if system == "" || arch == "" {
		return ""
	}
	return "if OS." + system + " && Hardware::CPU." + arch
}

// fill writes a file of package managers from its template in deploy/.
func (r *release) fill(from string) error {
	name := filepath.Base(from)
	t, err := template.ParseFiles(filepath.Join(r.root, "deploy", from))
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, r); err != nil {
		return err
	}
	_, text, _ := strings.Cut(b.String(), "\n") // the first line is about the template
	return os.WriteFile(filepath.Join(r.dist, name), []byte(text), 0o644)
}

// chart packs the chart. The version of the release becomes the version of the chart and of the images.
func (r *release) chart() error {
	from := filepath.Join(r.root, "deploy", "chart")
	var all []file
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(from, path)
		if within == "Chart.yaml" {
			number := strings.TrimPrefix(r.Version, "v")
			is := strings.NewReplacer("\nversion: 0.0.0", "\nversion: "+number, "\nappVersion: devel", "\nappVersion: "+r.Version).Replace(string(content))
			if content = []byte(is); !strings.Contains(is, "\nversion: "+number+"\n") || !strings.Contains(is, "\nappVersion: "+r.Version+"\n") {
				return fmt.Errorf("%s does not have the version 0.0.0 and the appVersion devel, which are to be replaced", path)
			}
		}
		all = append(all, file{"stsmigrate/" + filepath.ToSlash(within), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	content, err := tarball(r.time, all...)
	return errors.Join(err, os.WriteFile(filepath.Join(r.dist, "stsmigrate-"+strings.TrimPrefix(r.Version, "v")+".tgz"), content, 0o644))
}

// checksums writes the checksum of every file in the format of sha256sum.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist) // sorted
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "checksums.txt"), []byte(b.String()), 0o644)
}
