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

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/storage"
)

// fileServer returns the host that serves a volume: the server of an nfs source, or the host in the
// attributes of the drivers for nfs and smb. It returns "" for all other volumes.
func fileServer(pv *corev1.PersistentVolume) string {
	if s := storage.SourceOf(pv); s != nil {
		return host(s.Server)
	}
	return ""
}

// host extracts the host from //host/share, scheme://host/path, host:/path or [address]:port, in lower case
// and without the trailing dot of the root.
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

// ofCluster reports whether a cluster's own DNS answers a name, for its Services and pods. A cluster set has
// a domain of its own, in which a name means the same in all clusters.
func ofCluster(name string) bool {
	if name == "clusterset.local" || strings.HasSuffix(name, ".clusterset.local") {
		return false
	}
	return strings.HasSuffix(name, ".svc") || strings.Contains(name, ".svc.") || strings.HasSuffix(name, ".cluster.local")
}

// serverOutside requires a file server that is no Service of the source: neither by its address, nor by a
// short name that the search domains of a driver's pods complete.
func serverOutside(ctx context.Context, i check.Inspection, server string) ([]check.Finding, error) {
	address, err := netip.ParseAddr(server)
	short := err != nil && strings.Count(server, ".") <= 1
	if ofCluster(server) || err != nil && !short {
		return nil, nil // refused already, or a name in public DNS
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
			Remedy: "let a user who may list them look for it: " + i.Kubectl(plans.Source) + " get services -A",
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

// means reports whether a text is this address, in whatever notation.
func means(text string, address netip.Addr) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Unmap() == address.Unmap()
}
