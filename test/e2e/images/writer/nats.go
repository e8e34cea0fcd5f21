package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const subject = "log"

// stream is a stream of JetStream with three replicas.
type stream struct {
	connection *nats.Conn
	jetstream  jetstream.JetStream
}

func (s *stream) connected(ctx context.Context) (err error) {
	if s.jetstream != nil {
		return nil
	}
	if s.connection == nil {
		// A server that is back must be found soon. Otherwise the client itself causes the measured gap.
		s.connection, err = nats.Connect(os.Getenv("NATS_URL"), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
			nats.ReconnectJitter(0, 0), nats.Timeout(time.Second), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2))
		if err != nil {
			return err
		}
	}
	js, err := jetstream.New(s.connection)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: subject, Subjects: []string{subject}, Replicas: 3, Storage: jetstream.FileStorage})
	if err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		s.jetstream, err = js, nil
	}
	return err
}

func (s *stream) write(ctx context.Context, key string) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	_, err := s.jetstream.Publish(ctx, subject, []byte(key)) // returns when most replicas have it
	return err
}

func (s *stream) keys(ctx context.Context) (map[string]bool, error) {
	if err := s.connected(ctx); err != nil {
		return nil, err
	}
	st, err := s.jetstream.Stream(ctx, subject)
	if err != nil {
		return nil, err
	}
	consumer, err := st.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	// One consumer for all messages: a fetch makes a new one each time, and asks it before every server knows of it.
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	out := map[string]bool{}
	for last := st.CachedInfo().State.LastSeq; last > 0; {
		m, err := messages.Next(jetstream.NextMaxWait(10 * time.Second))
		if err != nil {
			return nil, err
		}
		about, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		out[string(m.Data())] = true
		if about.Sequence.Stream >= last {
			break
		}
	}
	return out, nil
}
