package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/stsmigrate/stsmigrate/internal/clusters"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// What a cluster answers is weighed before anything decodes it: a limit on its length is none on the memory that it takes.

// weighed returns the body of an answer that is read only if it is not too heavy: as a whole, or, of a watch, each event.
func weighed(r *http.Request, answer *http.Response, most int64) io.ReadCloser {
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	binary := strings.HasPrefix(media, "application/vnd.kubernetes.protobuf")
	switch {
	case watches(r) && binary:
		return &frames{ReadCloser: answer.Body, r: r, most: most}
	case watches(r):
		return &lines{ReadCloser: answer.Body, r: r}
	}
	return &whole{ReadCloser: answer.Body, r: r, binary: binary, most: most}
}

// tooHeavy says whose answer is not decoded.
func tooHeavy(r *http.Request, err error) error {
	if err == nil {
		return nil
	}
	return clusters.ErrTooLong{Host: r.URL.Host, Why: fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)}
}

// whole is the body of one answer. It is read as a whole before any of it is passed on, since a decoder of a piece would
// not wait for the rest.
type whole struct {
	io.ReadCloser
	r      *http.Request
	binary bool
	most   int64
	read   *bytes.Reader
	err    error
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.read == nil && w.err == nil {
		w.err = w.fill()
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.read.Read(p)
}

func (w *whole) fill() error {
	raw, err := io.ReadAll(w.ReadCloser)
	if err != nil {
		return err
	}
	w.read = bytes.NewReader(raw)
	var heavy int64
	if w.binary {
		heavy = weight.OfProtobuf(raw)
	} else if heavy, err = weight.OfJSON(raw); err != nil {
		return tooHeavy(w.r, err)
	}
	if !toObjects.MatchString(w.r.URL.EscapedPath()) {
		// What an API server has at all is asked for seldom, and its parts are small.
		if heavy > weight.Most {
			return tooHeavy(w.r, weight.ErrTooHeavy{Weight: heavy, Most: weight.Most})
		}
		return nil
	}
	return tooHeavy(w.r, weight.TakeFor(w.r.Context(), heavy))
}

// lines is the body of a watch in JSON: an event is a line.
type lines struct {
	io.ReadCloser
	r     *http.Request
	event weight.JSON
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		piece, ends := rest, bytes.IndexByte(rest, '\n')
		if ends >= 0 {
			piece = rest[:ends+1]
		}
		l.event.Add(piece)
		if l.event.Err != nil {
			return 0, tooHeavy(l.r, l.event.Err)
		}
		if l.event.Weight > weight.Alone {
			return 0, tooHeavy(l.r, weight.ErrTooHeavy{Weight: l.event.Weight, Most: weight.Alone})
		}
		if rest = rest[len(piece):]; ends >= 0 {
			l.event.Reset()
		}
	}
	return n, err
}

// frames is the body of a watch in protobuf: an event is a frame with its length before it.
type frames struct {
	io.ReadCloser
	r    *http.Request
	most int64
	left bytes.Reader
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if f.left.Len() == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	return f.left.Read(p)
}

// next reads one frame as a whole.
func (f *frames) next() error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(f.ReadCloser, head); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(head))
	if length > f.most {
		return clusters.ErrTooLong{Host: f.r.URL.Host, Most: f.most}
	}
	var frame bytes.Buffer
	frame.Write(head)
	if _, err := io.CopyN(&frame, f.ReadCloser, length); err != nil { // what is announced is not room that is taken
		return err
	}
	if w := weight.OfProtobuf(frame.Bytes()[4:]); w > weight.Alone {
		return tooHeavy(f.r, weight.ErrTooHeavy{Weight: w, Most: weight.Alone})
	}
	f.left.Reset(frame.Bytes())
	return nil
}
