package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
)

// database is an application whose pods depend on one another: a Ready pod has not necessarily caught up.
type database struct {
	name string
	// words are parts of the names of its images, and values of labels that name it.
	words []string
	// example is the heading in docs/gates.md that shows its gates, or "".
	example string
}

func databases() []database {
	return []database{
		{"etcd", []string{"etcd"}, "etcd"},
		{"CockroachDB", []string{"cockroach", "cockroachdb"}, "CockroachDB"},
		{"Kafka", []string{"kafka", "redpanda"}, "Kafka"},
		{"PostgreSQL", []string{"postgres", "postgresql", "patroni", "spilo", "repmgr", "timescaledb"}, "PostgreSQL with Patroni"},
		{"MySQL or MariaDB", []string{"mysql", "mariadb", "galera", "pxc", "xtradb", "percona"}, ""},
		{"MongoDB", []string{"mongo", "mongodb", "mongod"}, ""},
		{"Redis or Valkey", []string{"redis", "valkey", "keydb", "dragonfly"}, ""},
		{"ZooKeeper", []string{"zookeeper"}, ""},
		{"Cassandra or ScyllaDB", []string{"cassandra", "scylla", "scylladb", "dse"}, ""},
		{"Elasticsearch or OpenSearch", []string{"elasticsearch", "opensearch"}, ""},
		{"RabbitMQ", []string{"rabbitmq"}, ""},
		{"ClickHouse", []string{"clickhouse"}, ""},
		{"TiDB", []string{"tikv", "tidb"}, ""},
		{"NATS", []string{"nats"}, ""},
		{"Consul or Vault", []string{"consul", "vault"}, ""},
	}
}

// besides returns words of images that only read a database, or accompany one.
func besides() []string {
	return []string{"exporter", "operator", "metrics", "proxy", "client", "ui", "dashboards", "agent", "backup"}
}

// Gates suggests gates for a set of several pods that is known to be a replicated database.
func Gates(_ context.Context, i check.Inspection) ([]check.Finding, error) {
	set := i.Now.Set
	if set == nil || i.Plan.Count < 2 || len(i.Plan.Gates) > 0 {
		return nil, nil
	}
	d, why := databaseIn(set)
	if why == "" {
		return nil, nil
	}
	remedy := "let gates ask it: docs/gates.md says how"
	if d.example != "" {
		remedy = fmt.Sprintf("let gates ask it, in a Migration file: docs/gates.md has an example under %q", d.example)
	}
	return []check.Finding{{
		Level: check.Warn, Object: i.Name("source"),
		Saw:    fmt.Sprintf("%s says that it is %s, and the plan has no gates: the next ordinal leaves as soon as the previous one is Ready, even before that one has caught up with its peers", why, d.name),
		Want:   "gates before an ordinal leaves and after it has arrived",
		Remedy: remedy,
	}}, nil
}

// databaseIn returns the database that a set is, and the image or label that shows it, or "".
func databaseIn(set *appsv1.StatefulSet) (d database, why string) {
	spec := set.Spec.Template
	for _, c := range spec.Spec.Containers {
		_, path := located(c.Image)
		path, _, _ = strings.Cut(path, "@")
		name := path[strings.LastIndexByte(path, '/')+1:]
		name, _, _ = strings.Cut(name, ":")
		if d, known := databaseOf(name); known {
			return d, "image " + c.Image
		}
	}
	for _, labels := range []map[string]string{spec.Labels, set.Labels} {
		for _, key := range []string{"app.kubernetes.io/name", "app.kubernetes.io/component", "app"} {
			if d, known := databaseOf(labels[key]); known {
				return d, fmt.Sprintf("label %s=%s", key, labels[key])
			}
		}
	}
	return d, ""
}

// databaseOf returns the database of a name, word by word.
func databaseOf(name string) (database, bool) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(besides(), w) }) {
		return database{}, false
	}
	for _, d := range databases() {
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(d.words, w) }) {
			return d, true
		}
	}
	return database{}, false
}
