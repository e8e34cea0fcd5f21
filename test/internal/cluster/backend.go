package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// The events of a volume, as they are written in the backend's file.
const (
	created   = "created"
	attached  = "attached"
	detached  = "detached"
	refused   = "refused"
	destroyed = "destroyed"
)

// Event is one line of the backend's file.
type Event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Handle  string    `json:"handle"`
	Cluster string    `json:"cluster"`
	// Volume is the name of the PersistentVolume that the event is about.
	Volume string `json:"volume"`
	Node   string `json:"node,omitempty"`
}

// State is the state of one volume, computed from its events.
type State struct {
	// Created, Attached and Destroyed are the last events of their kind. They are nil if there was
	// no such event. Attached is also nil if the volume was detached since.
	Created, Attached, Destroyed *Event
	// Refused is the last attempt to attach the volume while it was attached elsewhere.
	Refused *Event
}

// Backend is the storage behind the clusters of a bed: an append-only file of JSON lines, which
// separate processes may share. A destroyed volume stays destroyed.
type Backend struct {
	path string
	// mu orders the goroutines of this process; the file's lock orders processes.
	mu sync.Mutex
}

// OpenBackend opens the backend at path. It creates the file if the file does not exist.
func OpenBackend(path string) (*Backend, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Backend{path: path}, f.Close()
}

// Events returns all events, in order.
func (b *Backend) Events() ([]Event, error) {
	var events []Event
	err := b.locked(os.O_RDONLY, func(f *os.File) (err error) {
		events, err = readEvents(f)
		return err
	})
	return events, err
}

// Volumes returns the state of every volume, by handle. A volume that was created outside the bed
// appears with its first event.
func (b *Backend) Volumes() (map[string]State, error) {
	events, err := b.Events()
	return states(events), err
}

// Destroyed returns the handles of the volumes whose data is destroyed, oldest first.
func (b *Backend) Destroyed() ([]string, error) {
	events, err := b.Events()
	var handles []string
	for _, e := range events {
		if e.Event == destroyed {
			handles = append(handles, e.Handle)
		}
	}
	return handles, err
}

// record calls decide with the current state of the volume and appends an event of the kind that
// decide returns, if any. It returns decide's error.
func (b *Backend) record(e Event, decide func(State) (kind string, err error)) error {
	return b.locked(os.O_RDWR|os.O_APPEND, func(f *os.File) error {
		events, err := readEvents(f)
		if err != nil {
			return err
		}
		kind, decision := decide(states(events)[e.Handle])
		if kind == "" {
			return decision
		}
		e.Event, e.Time = kind, time.Now().UTC()
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = f.Write(append(line, '\n'))
		return errors.Join(decision, err)
	})
}

// create records that a volume was created, once.
func (b *Backend) create(e Event) error {
	return b.record(e, func(s State) (string, error) { return unless(s.Created != nil, created), nil })
}

// destroy records that a volume's data was destroyed, once.
func (b *Backend) destroy(e Event) error {
	return b.record(e, func(s State) (string, error) { return unless(s.Destroyed != nil, destroyed), nil })
}

// attach fails, as a real disk does, if the volume no longer exists or is attached to another node,
// in this cluster or another.
func (b *Backend) attach(e Event) error {
	return b.record(e, func(s State) (string, error) {
		switch {
		case s.Destroyed != nil:
			return "", fmt.Errorf("volume %s does not exist", e.Handle)
		case s.Attached == nil:
			return attached, nil
		case s.Attached.samePlace(e):
			return "", nil
		}
		known := s.Refused != nil && s.Refused.samePlace(e) && s.Refused.Time.After(s.Attached.Time)
		return unless(known, refused), fmt.Errorf("volume %s is attached to node %s of %s", e.Handle, s.Attached.Node, s.Attached.Cluster)
	})
}

// detach does nothing if the volume is not attached to that node. A failed attach is undone by the
// same call.
func (b *Backend) detach(e Event) error {
	return b.record(e, func(s State) (string, error) {
		return unless(s.Attached == nil || !s.Attached.samePlace(e), detached), nil
	})
}

func unless(not bool, kind string) string {
	if not {
		return ""
	}
	return kind
}

func (e *Event) samePlace(other Event) bool {
	return e.Cluster == other.Cluster && e.Node == other.Node
}

func (b *Backend) locked(flag int, do func(*os.File) error) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, err := os.OpenFile(b.path, flag, 0)
	if err != nil {
		return err
	}
	// Closing the file releases the lock.
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do(f)
}

func readEvents(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d of the backend: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

func states(events []Event) map[string]State {
	all := map[string]State{}
	for _, e := range events {
		s := all[e.Handle]
		switch e.Event {
		case created:
			s.Created = &e
		case attached:
			s.Attached = &e
		case detached:
			s.Attached = nil
		case refused:
			s.Refused = &e
		case destroyed:
			s.Destroyed = &e
		}
		all[e.Handle] = s
	}
	return all
}
