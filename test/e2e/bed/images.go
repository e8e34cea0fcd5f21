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

// images writes an archive with an image for each program: etcd, and the programs of the folders
// below images. Each image contains its program and nothing else.
func images(ctx context.Context, dir string) (archive string, err error) {
	etcd, err := cluster.Program(ctx, "etcd")
	if err != nil {
		return "", err
	}
	programs := map[string]string{"etcd": etcd}
	for _, p := range []string{"csi", "data", "etcdclient"} {
		programs[p] = filepath.Join(dir, p)
		if err := build(ctx, "./images/"+p, programs[p]); err != nil {
			return "", err
		}
	}
	all := map[name.Tag]v1.Image{}
	for p, path := range programs {
		tag, err := name.NewTag(Image(p))
		if err != nil {
			return "", err
		}
		if all[tag], err = image(p, path); err != nil {
			return "", err
		}
	}
	archive = filepath.Join(dir, "images.tar")
	return archive, tarball.MultiWriteToFile(archive, all)
}

// image returns an image of one static program, /bin/NAME.
func image(program, path string) (v1.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: "bin/" + program, Mode: 0o755, Size: int64(len(content))}); err != nil {
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
	file.Config.Entrypoint = []string{"/bin/" + program}
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
