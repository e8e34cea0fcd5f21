package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Ports are chosen below the range that the kernel uses for outgoing connections, so that no port
// can be lost between the choice and the listen.
const (
	firstPort = 20000
	lastPort  = 31999
	// portClaim is how long a claim is valid. It is longer than a cluster takes to listen on its
	// ports.
	portClaim = 5 * time.Minute
)

// freePorts chooses n loopback ports and claims them, with files in the cache folder, against other
// processes that start a cluster at the same moment.
func freePorts(ctx context.Context, n int) ([]int, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(cache, "ports.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := dropOldClaims(dir); err != nil {
		return nil, err
	}
	ports := make([]int, 0, n)
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		claim := filepath.Join(dir, strconv.Itoa(port))
		if _, err := os.Stat(claim); err == nil || !listenable(port) {
			continue
		}
		if err := os.WriteFile(claim, nil, 0o644); err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
}

// dropOldClaims removes the claims older than portClaim: their clusters listen by now, or never
// will.
func dropOldClaims(dir string) error {
	claims, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, c := range claims {
		info, err := c.Info()
		if err != nil || time.Since(info.ModTime()) < portClaim {
			continue
		}
		if err := os.Remove(filepath.Join(dir, c.Name())); err != nil {
			return err
		}
	}
	return nil
}

func listenable(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
