// Command csi is the storage of the bed: volumes that are folders of one file system, shared by all
// nodes of all clusters.
//
//	csi node FOLDER DRIVER...      the node part of the drivers, for the kubelet
//	csi provision CLUSTER FILE     provision, attach and reclaim the volumes of a cluster;
//	                               FILE, which clusters share, records their events
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/stsmigrate/stsmigrate/test/internal/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "csi: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 2 && args[0] == "node":
		return serveNode(args[1], args[2:])
	case len(args) == 3 && args[0] == "provision":
		config, err := rest.InClusterConfig()
		if err != nil {
			return err
		}
		backend, err := cluster.OpenBackend(args[2])
		if err != nil {
			return err
		}
		p := cluster.Provisioner{Cluster: args[1], Config: config, Backend: backend}
		return p.Run(ctx)
	}
	return fmt.Errorf("unknown arguments %q", args)
}
