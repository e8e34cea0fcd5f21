package bed

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// registryName is in the names of images. The nodes have an address for it, and no DNS knows it.
	registryName = "registry.stsmigrate.test"
	// certs is where containerd looks for the addresses of registries.
	certs = "/etc/containerd/certs.d"
)

// registries returns what the containerd of every node is told of registries.
func registries() []string {
	return []string{"[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"" + certs + "\"\n"}
}

// Registry is a registry from which the nodes of one cluster pull slowly, and those of the other one as fast as they can.
type Registry struct {
	bed     *Bed
	image   atomic.Pointer[v1.Image] // the only one
	servers []*http.Server
}

// Registry starts one beside the nodes. Each connection of the West carries so many bytes in a second.
func (b *Bed) Registry(ctx context.Context, rate int) (*Registry, error) {
	gateway, err := said(ctx, "network", "inspect", "kind", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
	if err != nil {
		return nil, err
	}
	var address string
	if _, err := fmt.Sscan(gateway, &address); err != nil {
		return nil, fmt.Errorf("the address of this machine in the network kind, of %q: %w", gateway, err)
	}
	r := &Registry{bed: b}
	slowly := func(w http.ResponseWriter, req *http.Request) {
		r.serve(&throttled{ResponseWriter: w, ctx: req.Context(), rate: rate, began: time.Now()}, req)
	}
	for c, serve := range map[*Cluster]http.HandlerFunc{b.East: r.serve, b.West: slowly} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address+":0")
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		s := &http.Server{Handler: serve, ReadHeaderTimeout: time.Minute}
		r.servers = append(r.servers, s)
		go func() { _ = s.Serve(listener) }() // ends with Close
		if err := b.pullFrom(ctx, c, listener.Addr().String()); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// pullFrom tells the nodes of a cluster the address of the registry.
func (b *Bed) pullFrom(ctx context.Context, c *Cluster, address string) error {
	all, err := b.Nodes(c)
	if err != nil {
		return err
	}
	const script = `mkdir -p "$0" && printf '[host."http://%s"]\n  capabilities = ["pull", "resolve"]\n' "$1" > "$0/hosts.toml"`
	for _, n := range all {
		if err := docker(ctx, "exec", n.String(), "sh", "-c", script, certs+"/"+registryName, address); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the registry.
func (r *Registry) Close() error {
	var all error
	for _, s := range r.servers {
		all = errors.Join(all, s.Close())
	}
	return all
}

// serve answers whoever pulls the image: whatever its name is, there is one.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	current := r.image.Load()
	if current == nil {
		http.NotFound(w, req)
		return
	}
	kind, content, err := blob(*current, req.URL.Path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer func() { _ = content.Close() }() // only read from
	raw, err := io.ReadAll(content)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	if strings.Contains(req.URL.Path, "/manifests/") {
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(raw)))
	}
	if req.Method != http.MethodHead {
		_, _ = io.Copy(w, bytes.NewReader(raw)) // a client that has gone needs nothing
	}
}

// blob returns what is pulled by a path, and its media type.
func blob(img v1.Image, path string) (kind string, content io.ReadCloser, err error) {
	raw, err := img.RawManifest()
	if err != nil {
		return "", nil, err
	}
	if strings.Contains(path, "/manifests/") {
		media, err := img.MediaType()
		return string(media), io.NopCloser(bytes.NewReader(raw)), err
	}
	_, digest, blobs := strings.Cut(path, "/blobs/")
	if !blobs { // the question whether there is a registry
		return "application/json", io.NopCloser(strings.NewReader("{}")), nil
	}
	hash, err := v1.NewHash(digest)
	if err != nil {
		return "", nil, err
	}
	if config, err := img.ConfigName(); err == nil && config == hash {
		raw, err := img.RawConfigFile()
		return "application/octet-stream", io.NopCloser(bytes.NewReader(raw)), err
	}
	layer, err := img.LayerByDigest(hash)
	if err != nil {
		return "", nil, err
	}
	content, err = layer.Compressed()
	return "application/octet-stream", content, err
}

// layers is how many layers of an image are pulled at once: as many as containerd pulls by default.
const layers = 3

// Put puts an image with a program and so many bytes that nothing can compress into the registry, in the place of all
// others, and returns its name. Two images have no layer in common but that of the program.
func (r *Registry) Put(ctx context.Context, of, tag string, size int, seed uint64) (string, error) {
	path, err := program(ctx, r.bed.dir, of)
	if err != nil {
		return "", err
	}
	img, err := image(of, path)
	if err != nil {
		return "", err
	}
	for k := range layers {
		layer, err := ballast(fmt.Sprintf("ballast-%d", k), size/layers, seed<<8|uint64(k))
		if err != nil {
			return "", err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return "", err
		}
	}
	r.image.Store(&img)
	return registryName + "/" + of + ":" + tag, nil
}

// ballast returns a layer with one file of random bytes.
func ballast(file string, size int, seed uint64) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(size)}); err != nil {
		return nil, err
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	if _, err := io.CopyN(w, rand.NewChaCha8(key), int64(size)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return static.NewLayer(b.Bytes(), types.DockerUncompressedLayer), nil
}

// Forget removes an image from all nodes: they have one disk.
func (r *Registry) Forget(ctx context.Context, image string) error {
	var all error
	for _, c := range r.bed.Clusters() {
		nodes, err := r.bed.Nodes(c)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			all = errors.Join(all, docker(ctx, "exec", n.String(), "sh", "-c", `ctr -n k8s.io images ls -q | grep -F "$0" | xargs -r ctr -n k8s.io images rm --sync`, image))
		}
	}
	return all
}

// throttled is an answer that carries no more than some bytes in a second.
type throttled struct {
	http.ResponseWriter
	ctx   context.Context //nolint:containedctx // of the request
	rate  int
	began time.Time
	sent  int
}

func (a *throttled) Write(p []byte) (written int, err error) {
	for part := range slices.Chunk(p, a.rate/10) {
		n, err := a.ResponseWriter.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		a.sent += n
		due := time.Duration(float64(a.sent) / float64(a.rate) * float64(time.Second))
		select {
		case <-time.After(time.Until(a.began.Add(due))):
		case <-a.ctx.Done():
			return written, a.ctx.Err()
		}
	}
	return written, nil
}
