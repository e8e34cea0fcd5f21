// Command data is a member of a StatefulSet that detects the damage that a migration could do to
// it. On each of its volumes it keeps its ordinal, a lock, and a growing list of records with
// checksums. All the time it looks up its peers by all their names and checks which member
// responds. It writes each fault that it finds to the volume, so that no restart hides it.
//
//	data -peers a,b,c [-stubborn] [-unready-in NAMESPACE] DIR...
//
// GET /ordinal returns the ordinal, /ready whether the member serves, /state everything it knows. A
// stubborn member ignores SIGTERM.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stsmigrate/stsmigrate/test/e2e/history"
)

// State is everything that a member knows.
type State struct {
	Ordinal string
	// Records is the number of records on each volume, all of them checked.
	Records map[string]int
	// Wrong lists the faults that must never occur, over the life of the volume.
	Wrong []string
	// Names is the result of looking up each name, since the start.
	Names map[string]*history.Name
}

type member struct {
	mu    sync.Mutex
	state State
	dirs  []string
	files map[string]*os.File
	// serves is true if the member ever becomes ready.
	serves bool
	// full is the volume on which there is no room for the next record, if there is one.
	full string
}

func main() {
	peers := flag.String("peers", "", "names of all members; the ordinal is the number after the last dash of the first label")
	stubborn := flag.Bool("stubborn", false, "ignore SIGTERM")
	unready := flag.String("unready-in", "", "namespace in which the member never becomes ready")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if *stubborn {
		stop()
		signal.Ignore(syscall.SIGTERM)
		ctx = context.Background()
	}
	m := &member{dirs: flag.Args(), files: map[string]*os.File{}, serves: *unready == "" || os.Getenv("POD_NAMESPACE") != *unready}
	if err := m.run(ctx, strings.Split(*peers, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "data: "+err.Error())
		os.Exit(1)
	}
}

func (m *member) run(ctx context.Context, peers []string) error {
	m.state = State{Ordinal: ordinalOf(os.Getenv("POD_NAME")), Records: map[string]int{}, Names: map[string]*history.Name{}}
	for _, dir := range m.dirs {
		if err := m.open(dir); err != nil {
			m.wrong(err.Error())
			return err
		}
	}
	m.state.Wrong = m.readWrong()
	m.compare()
	server := &http.Server{Addr: ":8080", Handler: m.routes(), ReadHeaderTimeout: time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	go m.write(ctx)
	for _, p := range peers {
		if p != "" {
			m.state.Names[p] = &history.Name{}
			go m.lookup(ctx, p)
		}
	}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ordinalOf returns the number after the last dash of the first label.
func ordinalOf(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label[strings.LastIndexByte(label, '-')+1:]
}

// open opens a volume: no other pod may use it, it must belong to this ordinal, and every record
// ever written must exist.
func (m *member) open(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is in use by another pod", dir)
	}
	m.files[dir+"/lock"] = lock // otherwise the file is closed, and the lock is lost
	mark := filepath.Join(dir, "ordinal")
	have, err := os.ReadFile(mark)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(mark, []byte(m.state.Ordinal), 0o600); err != nil {
			return err
		}
	case err != nil:
		return err
	case string(have) != m.state.Ordinal:
		return fmt.Errorf("%s is the volume of ordinal %s, but this member has ordinal %s", dir, have, m.state.Ordinal)
	}
	f, err := os.OpenFile(filepath.Join(dir, "records"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	m.files[dir] = f
	n, err := check(f)
	m.state.Records[dir] = n
	return err
}

// compare checks that all volumes have the same number of records. They get records in turn, so a
// later volume may be one record behind. A volume that was restored to an earlier state has fewer.
func (m *member) compare() {
	for _, dir := range m.dirs {
		if n, first := m.state.Records[dir], m.state.Records[m.dirs[0]]; n > first || n < first-1 {
			m.wrong(fmt.Sprintf("%s has %d records, and %s has %d", dir, n, m.dirs[0], first))
		}
	}
}

// check reads all records, returns their number and leaves the file at its end. A last line that
// was cut off by a kill was never acknowledged; it is overwritten.
func check(f *os.File) (n int, err error) {
	var end int64
	r := bufio.NewReader(f)
	for {
		text, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		if text != line(n) {
			return n, fmt.Errorf("%s: record %d is %q", f.Name(), n, text)
		}
		n++
		end += int64(len(text))
	}
	if err := f.Truncate(end); err != nil {
		return n, err
	}
	_, err = f.Seek(end, io.SeekStart)
	return n, err
}

func line(n int) string { return fmt.Sprintf("%d %x\n", n, sha256.Sum256(fmt.Append(nil, n))) }

// write adds a record to each volume in turn, every tick. It waits for a volume that is full: the
// next ones get no record meanwhile.
func (m *member) write(ctx context.Context) {
	next := m.behind()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for ; next < len(m.dirs); next++ {
			err := m.add(m.dirs[next])
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			if err != nil {
				m.wrong(err.Error())
				os.Exit(1)
			}
		}
		if next == len(m.dirs) {
			next = 0
		}
	}
}

// behind returns the first volume that has a record less than the ones before it.
func (m *member) behind() int {
	for i, dir := range m.dirs {
		if m.state.Records[dir] < m.state.Records[m.dirs[0]] {
			return i
		}
	}
	return 0
}

// add adds a record to a volume, or leaves the volume as it was if it is full.
func (m *member) add(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, n := m.files[dir], m.state.Records[dir]
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(line(n)); err == nil {
		err = f.Sync()
	}
	switch {
	case err == nil:
		m.state.Records[dir], m.full = n+1, ""
	case errors.Is(err, syscall.ENOSPC):
		m.full = dir
		if _, undone := f.Seek(end, io.SeekStart); undone != nil {
			return undone
		}
		if undone := f.Truncate(end); undone != nil {
			return undone
		}
	}
	return err
}

// lookup repeatedly looks up one name and checks which member responds at its address.
func (m *member) lookup(ctx context.Context, name string) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		err := ask(ctx, client, name)
		if ctx.Err() != nil {
			return
		}
		m.note(name, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, name string) error {
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	if len(addresses) > 1 {
		return fmt.Errorf("%w: %s has the addresses %v", history.ErrWrong, name, addresses)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(addresses[0], "8080")+"/ordinal", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // the body is read to its end, or its error does not matter
	who, err := io.ReadAll(answer.Body)
	if err == nil && string(who) != ordinalOf(name) {
		return fmt.Errorf("%w: %s at %s reports ordinal %q", history.ErrWrong, name, addresses[0], who)
	}
	return err
}

func (m *member) note(name string, err error) {
	m.mu.Lock()
	m.state.Names[name].Note(time.Now(), err)
	m.mu.Unlock()
	if errors.Is(err, history.ErrWrong) {
		m.wrong(err.Error())
	}
}

// wrong records a fault where a restart does not lose it.
func (m *member) wrong(what string) {
	fmt.Fprintln(os.Stderr, "data: WRONG: "+what)
	m.mu.Lock()
	m.state.Wrong = append(m.state.Wrong, what)
	m.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(m.dirs[0], "wrong"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintf(f, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), os.Getenv("POD_NAME"), what)
		_ = f.Close()
	}
}

func (m *member) readWrong() []string {
	raw, _ := os.ReadFile(filepath.Join(m.dirs[0], "wrong"))
	if len(raw) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

func (m *member) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ordinal", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, m.state.Ordinal) })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !m.serves {
			http.Error(w, "this member never serves here", http.StatusServiceUnavailable)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.full != "" {
			http.Error(w, m.full+" is full", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /crash", func(http.ResponseWriter, *http.Request) { os.Exit(1) })
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		_ = json.NewEncoder(w).Encode(m.state)
	})
	return mux
}
