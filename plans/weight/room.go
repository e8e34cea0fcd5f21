package weight

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/semaphore"
)

const (
	// Most is the weight of the heaviest document that is decoded: a page of 500 pods with a hundred variables each.
	Most = 192 << 20
	// Record is the weight of the heaviest document of one object of Kubernetes, such as a plan in a ConfigMap.
	Record = 96 << 20
	// Light is the weight up to which documents are decoded without waiting for others.
	Light = 2 << 20
	// Alone is the weight of the heaviest document that is decoded by what takes no Room: one event of a watch.
	Alone = 48 << 20
	// room is what a process decodes at once, beside what is light.
	room = 224 << 20
)

// ErrTooHeavy reports that a document is not decoded.
type ErrTooHeavy struct {
	Weight, Most int64 // bytes
}

func (e ErrTooHeavy) Error() string {
	return fmt.Sprintf("decoded it could take %d MiB of memory, and at most %d are given to it", e.Weight>>20, e.Most>>20)
}

var decoding = semaphore.NewWeighted(room) //nolint:gochecknoglobals // a process has one memory

// Take waits until a document may be decoded, and returns what gives its room back. It refuses one that is heavier than
// Most.
func Take(ctx context.Context, w int64) (release func(), err error) {
	switch {
	case w > Most:
		return nil, ErrTooHeavy{w, Most}
	case w <= Light:
		return func() {}, nil
	}
	if err := decoding.Acquire(ctx, w); err != nil {
		return nil, err
	}
	return func() { decoding.Release(w) }, nil
}

// Guard runs the decoder of a JSON document when there is room for what the document may become. It refuses one that is
// heavier than Record, and returns the error of the decoder.
func Guard(raw []byte, decode func() error) error {
	w, err := OfJSON(raw)
	if err != nil {
		return err
	}
	return guard(w, decode)
}

// GuardYAML is Guard for the tree of a YAML document. The JSON that it becomes is weighed when that is decoded.
func GuardYAML(raw []byte, decode func() error) error { return guard(OfYAML(raw), decode) }

func guard(w int64, decode func() error) error {
	if w > Record {
		return ErrTooHeavy{w, Record}
	}
	release, err := Take(context.Background(), w) //nolint:forbidigo // what it waits for only decodes
	if err != nil {
		return err
	}
	defer release()
	return decode()
}

// Unmarshal is json.Unmarshal under Guard.
func Unmarshal(raw []byte, into any) error {
	return Guard(raw, func() error { return json.Unmarshal(raw, into) })
}

// Room is the room of one request. What reads the answer takes it, and who has decoded the answer gives it back: only the
// caller knows when that is.
type Room struct {
	release func()
	taken   int64
}

type roomKey struct{}

// WithRoom returns a context whose request may have a heavy answer. The caller gives the room back when the answer is
// decoded.
func WithRoom(ctx context.Context) (context.Context, *Room) {
	r := &Room{release: func() {}}
	return context.WithValue(ctx, roomKey{}, r), r
}

// Give gives the room back.
func (r *Room) Give() {
	r.release()
	r.release = func() {}
}

// Taken returns the weight of what was read.
func (r *Room) Taken() int64 { return r.taken }

// TakeFor takes room for the answer to the request of a context. Without a Room, only what is not heavier than Alone may be
// read.
func TakeFor(ctx context.Context, w int64) error {
	r, has := ctx.Value(roomKey{}).(*Room)
	if !has {
		if w > Alone {
			return ErrTooHeavy{w, Alone}
		}
		return nil
	}
	r.Give() // of a request that was sent again the first answer is not decoded
	release, err := Take(ctx, w)
	if err != nil {
		return err
	}
	r.release, r.taken = release, w
	return nil
}
