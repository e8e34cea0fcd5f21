package bed

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

// Image returns the name that the image of a program has in the nodes.
func Image(program string) string { return "stsmigrate.test/" + program + ":e2e" }

// programs returns the programs of every bed. Others are brought by the tests that need them.
func programs() []string { return []string{"etcd", "csi", "data", "etcdclient"} }

// Bring builds images of programs and loads them into all nodes.
func (b *Bed) Bring(ctx context.Context, programs ...string) error {
	archive, err := images(ctx, b.dir, programs...)
	if err != nil {
		return err
	}
	for _, c := range b.Clusters() {
		if err := b.Load(c, archive); err != nil {
			return err
		}
	}
	return nil
}

// images writes an archive with an image for each program. Each image contains its program and
// nothing else.
func images(ctx context.Context, dir string, programs ...string) (archive string, err error) {
	all := map[name.Tag]v1.Image{}
	for _, p := range programs {
		path, err := program(ctx, dir, p)
		if err != nil {
			return "", err
		}
		tag, err := name.NewTag(Image(p))
		if err != nil {
			return "", err
		}
		if all[tag], err = image(p, path); err != nil {
			return "", err
		}
	}
	archive = filepath.Join(dir, programs[0]+".tar")
	return archive, tarball.MultiWriteToFile(archive, all)
}

// program builds a program and returns its path.
func program(ctx context.Context, dir, name string) (string, error) {
	switch path := filepath.Join(dir, name); name {
	case "etcd":
		return cluster.Program(ctx, name)
	case placeholder:
		return path, build(ctx, "github.com/stsmigrate/stsmigrate/cmd/placeholder", path)
	case "nats-server":
		return path, build(ctx, "github.com/nats-io/nats-server/v2", path)
	default:
		return path, build(ctx, "./images/"+name, path)
	}
}

// placeholder is the program of placeholders, which has the place in its image that it has when it is published.
const placeholder = "placeholder"

// image returns an image of one static program, /bin/NAME.
func image(program, path string) (v1.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	at := "bin/" + program
	if program == placeholder {
		at = program
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: at, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config.Entrypoint, file.Config.Env = []string{"/" + at}, []string{"PATH=/bin"}
	return mutate.ConfigFile(img, file)
}

// build compiles a package of this module into a static program.
func build(ctx context.Context, pkg, path string) error {
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir = filepath.Dir(filepath.Dir(here))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
}
