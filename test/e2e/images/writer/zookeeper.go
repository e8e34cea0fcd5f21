package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// root is the parent of the nodes that are the keys.
const root = "/log"

// tree is a ZooKeeper. Its library finds another server by itself.
type tree struct {
	connection *zk.Conn
}

// names hands out the names of the servers in turn. The library's own provider looks them up once, and keeps
// addresses at which there is nobody when all servers have moved.
type names struct {
	servers    []string
	next, last int
}

func (n *names) Init(servers []string) error {
	n.servers, n.next, n.last = servers, 0, len(servers)-1
	return nil
}

func (n *names) Len() int { return len(n.servers) }

// Next returns the next server, and whether all were tried since the last connection.
func (n *names) Next() (server string, retryStart bool) {
	server, retryStart = n.servers[n.next], n.next == n.last
	n.next = (n.next + 1) % len(n.servers)
	return server, retryStart
}

// Connected is called when the server that Next returned last has answered.
func (n *names) Connected() { n.last = (n.next + len(n.servers) - 1) % len(n.servers) }

func (t *tree) connected() (*zk.Conn, error) {
	if t.connection == nil {
		c, _, err := zk.Connect(strings.Split(os.Getenv("ZOOKEEPER"), ","), 10*time.Second, zk.WithLogInfo(false), zk.WithHostProvider(&names{}))
		if err != nil {
			return nil, err
		}
		t.connection = c
	}
	return t.connection, nil
}

func (t *tree) write(ctx context.Context, key string) error {
	c, err := t.connected()
	if err != nil {
		return err
	}
	return within(ctx, func() error {
		err := create(c, nodeOf(key))
		if errors.Is(err, zk.ErrNoNode) {
			if err = create(c, root); err == nil || errors.Is(err, zk.ErrNodeExists) {
				err = create(c, nodeOf(key))
			}
		}
		return err
	})
}

func (t *tree) keys(ctx context.Context) (map[string]bool, error) {
	c, err := t.connected()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	err = within(ctx, func() error {
		if _, err := c.Sync(root); err != nil { // a follower may be behind
			return err
		}
		all, _, err := c.Children(root)
		for _, name := range all {
			out[keyOf(name)] = true
		}
		return err
	})
	return out, err
}

// within returns the error of a call, or that of the context if it ends before: the library waits for a server.
func within(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func create(c *zk.Conn, path string) error {
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

// A slash would make a tree of the keys.
func nodeOf(key string) string { return root + "/" + strings.ReplaceAll(key, "/", "|") }
func keyOf(name string) string { return strings.ReplaceAll(name, "|", "/") }
