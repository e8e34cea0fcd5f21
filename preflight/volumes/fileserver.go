package volumes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/clusters"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/preflight/check"
)

// fileServer is the host that serves a volume, as its object names it: that of an nfs
// source, or what the drivers for nfs and smb keep in their attributes. "" for all others.
func fileServer(pv *corev1.PersistentVolume) string {
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.NFS != nil:
		return host(s.NFS.Server)
	case s.CSI != nil && s.CSI.VolumeAttributes["server"] != "":
		return host(s.CSI.VolumeAttributes["server"])
	case s.CSI != nil:
		return host(s.CSI.VolumeAttributes["source"])
	}
	return ""
}

// host takes the host out of what may be //host/share, scheme://host/path, host:/path or
// [address]:port, in lower case and without the root's dot.
func host(server string) string {
	server = strings.ToLower(strings.ReplaceAll(server, `\`, "/"))
	if _, rest, ok := strings.Cut(server, "//"); ok {
		server = rest
	}
	server, _, _ = strings.Cut(server, "/")
	if inside, ok := strings.CutPrefix(server, "["); ok {
		server, _, _ = strings.Cut(inside, "]")
	} else if strings.Count(server, ":") == 1 {
		server, _, _ = strings.Cut(server, ":")
	}
	return strings.TrimSuffix(server, ".")
}

// ofCluster says whether a name is one that a cluster's own DNS answers, for its Services and
// pods. A set of clusters has a domain of its own, in which a name means the same for all.
func ofCluster(name string) bool {
	if name == "clusterset.local" || strings.HasSuffix(name, ".clusterset.local") {
		return false
	}
	return strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.") || strings.HasSuffix(name, ".cluster.local")
}

// serverOutside wants a file server that is no Service of the source: not by its address, and
// not by a short name that the search domains of a driver's pods complete.
func serverOutside(ctx context.Context, i check.Inspection, server string) ([]check.Finding, error) {
	address, err := netip.ParseAddr(server)
	short := err != nil && strings.Count(server, ".") <= 1
	if ofCluster(server) || err != nil && !short {
		return nil, nil // refused already, or a name of the world's DNS
	}
	var sure, maybe string
	err = clusters.Each(ctx, i.On[plans.Source], func() client.ObjectList { return &corev1.ServiceList{} }, func(s *corev1.Service) {
		called := fmt.Sprintf("Service %s/%s of the source", s.Namespace, s.Name)
		switch {
		case slices.ContainsFunc(append(s.Spec.ClusterIPs, s.Spec.ClusterIP), func(ip string) bool { return means(ip, address) }):
			sure = "its file server " + server + " is the address of " + called
		case server == s.Name+"."+s.Namespace:
			sure = "its file server " + server + " is " + called
		case server == s.Name:
			maybe = "its file server " + server + " may be " + called
		}
	})
	if apierrors.IsForbidden(err) {
		return []check.Finding{{
			Level: check.Warn, Saw: "you may not list the Services of the source, and its file server " + server + " could be one of them", Want: "a server that both clusters reach",
			Remedy: "have somebody look who may: kubectl --context " + i.Plan.Source.Context + " get services -A | grep -w " + server,
		}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Services of the source: %w", err)
	}
	f := check.Finding{Saw: sure, Want: "a server that both clusters reach", Remedy: "its data would have to be copied, which this program does not do"}
	if sure == "" {
		f.Level, f.Saw, f.Remedy = check.Warn, maybe, "see whether the name means the same server in both clusters"
	}
	if f.Saw == "" {
		return nil, nil
	}
	return []check.Finding{f}, nil
}

// means says whether a text is this address, in whatever form it is written.
func means(text string, address netip.Addr) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Unmap() == address.Unmap()
}
