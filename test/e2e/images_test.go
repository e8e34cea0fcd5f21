//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Each image contains a static program and nothing else. The program runs as an unprivileged user,
// without capabilities, network or a writable file system.
func TestImages(t *testing.T) {
	const version = "v0.0.0-e2e"
	if _, err := command("../..", "make", "images", "VERSION="+version); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"stsmigrate", "orchestrator", "slicecontroller", "placeholder"} {
		t.Run(program, func(t *testing.T) {
			name, archive := program+":"+version, filepath.Join(t.TempDir(), "image.tar")
			t.Cleanup(func() { _, _ = command("", "docker", "rmi", name) })
			if _, err := command("", "docker", "save", "-o", archive, name); err != nil {
				t.Fatal(err)
			}
			inspect(t, archive, program, version)
			out, err := command("", "docker", "run", "--rm", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=none", name, "--version")
			if err != nil || !strings.HasPrefix(out, program+" "+version+"\n") {
				t.Errorf("--version: %v\n%s", err, out)
			}
		})
	}
}

// inspect checks the archive that docker save has written.
func inspect(t *testing.T, archive, program, version string) {
	t.Helper()
	img, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c, about := file.Config, "org.opencontainers.image."
	labels := map[string]string{
		about + "title": program, about + "version": version, about + "licenses": "Apache-2.0", about + "source": "https://github.com/stsmigrate/stsmigrate",
	}
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/" + program}) || len(c.Cmd) > 0 || len(c.Volumes) > 0 || !maps.Equal(c.Labels, labels) {
		t.Errorf("the image's configuration is %+v", c)
	}
	contents(t, img, program)
}

// contents checks that the program is the only file.
func contents(t *testing.T, img v1.Image, program string) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("%d layers, expected 1", len(layers))
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = layer.Close() }()
	files := tar.NewReader(layer)
	h, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != program || h.Typeflag != tar.TypeReg || h.Mode&0o7777 != 0o755 || h.Uid != 0 {
		t.Errorf("the file is %s, of type %c, mode %o and owner %d", h.Name, h.Typeflag, h.Mode, h.Uid)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	static(t, content)
	if h, err := files.Next(); err != io.EOF {
		t.Errorf("there is more than the program: %+v, %v", h, err)
	}
}

// static checks that a program needs neither an interpreter nor libraries.
func static(t *testing.T, content []byte) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("it has an interpreter")
	}
	if libraries, err := program.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %v", libraries)
	}
}
