// Command crictl implements the two commands of crictl that kind and kubeadm use on a node:
// inspecti IMAGE and images.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crictl:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	conn, err := grpc.NewClient("unix:///run/containerd/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // only read from
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	images := cri.NewImageServiceClient(conn)
	switch {
	case len(args) == 2 && args[0] == "inspecti":
		r, err := images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: args[1]}})
		switch {
		case err != nil:
			return err
		case r.Image == nil:
			return fmt.Errorf("no such image %q", args[1])
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"status": map[string]any{
			"id": r.Image.Id, "repoTags": r.Image.RepoTags, "repoDigests": r.Image.RepoDigests,
		}})
	case len(args) == 1 && args[0] == "images":
		r, err := images.ListImages(ctx, &cri.ListImagesRequest{})
		if err != nil {
			return err
		}
		for _, i := range r.Images {
			fmt.Println(i.Id, i.Size, i.RepoTags)
		}
		return nil
	}
	return errors.New("usage: crictl inspecti IMAGE | images")
}
