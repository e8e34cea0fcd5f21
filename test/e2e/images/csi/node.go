package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const kubelet = "/var/lib/kubelet"

// serveNode serves each of the drivers on sockets of its own.
func serveNode(folder string, drivers []string) error {
	var g errgroup.Group
	for _, name := range drivers {
		d := driver{name: name, data: folder}
		socket := filepath.Join(kubelet, "plugins", name, "csi.sock")
		g.Go(func() error {
			return serve(socket, func(s *grpc.Server) { csi.RegisterIdentityServer(s, d); csi.RegisterNodeServer(s, d) })
		})
		g.Go(func() error {
			return serve(filepath.Join(kubelet, "plugins_registry", name+"-reg.sock"), func(s *grpc.Server) {
				registration.RegisterRegistrationServer(s, registrar{name: name, endpoint: socket})
			})
		})
	}
	return g.Wait()
}

func serve(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	register(s)
	return s.Serve(l)
}

// registrar registers a driver with the kubelet.
type registrar struct {
	registration.UnsafeRegistrationServer
	name, endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintf(os.Stderr, "csi: the kubelet refuses %s: %s\n", r.name, s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	name, data string
}

func (d driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "test"}, nil
}

func (d driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: os.Getenv("NODE_NAME")}, nil
}

func (d driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume bind-mounts the folder of a volume at the kubelet's target path.
func (d driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	folder, err := d.folder(r.VolumeId)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(folder, 0o750), os.MkdirAll(r.TargetPath, 0o750)); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if sameFile(folder, r.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := unix.Mount(folder, r.TargetPath, "", unix.MS_BIND, ""); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume removes the mount. Nothing below it is touched.
func (d driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unix.Unmount(r.TargetPath, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := os.Remove(r.TargetPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (d driver) folder(volume string) (string, error) {
	if volume == "" || volume != filepath.Base(volume) || volume == "." || volume == ".." {
		return "", status.Errorf(codes.InvalidArgument, "volume handle %q", volume)
	}
	return filepath.Join(d.data, volume), nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
