package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgres is a database with a primary, which the driver finds among the servers of $PGHOST.
type postgres struct {
	connection *pgx.Conn
}

func (p *postgres) connected(ctx context.Context) (*pgx.Conn, error) {
	if p.connection != nil && !p.connection.IsClosed() {
		return p.connection, nil
	}
	config, err := pgx.ParseConfig("target_session_attrs=read-write connect_timeout=1 sslmode=disable")
	if err != nil {
		return nil, err
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "create table if not exists log (key text primary key)"); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	p.connection = c
	return c, nil
}

// close ends the connection, so that the next call looks for the primary again.
func (p *postgres) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = p.connection.Close(ctx) // it failed already
}

func (p *postgres) write(ctx context.Context, key string) error {
	c, err := p.connected(ctx)
	if err != nil {
		return err
	}
	if _, err = c.Exec(ctx, "insert into log values ($1)", key); err != nil {
		p.close()
	}
	return err
}

func (p *postgres) keys(ctx context.Context) (map[string]bool, error) {
	c, err := p.connected(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := c.Query(ctx, "select key from log")
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	out := map[string]bool{}
	for _, key := range all {
		out[key] = true
	}
	return out, err
}
