package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/plans/journal"
)

// Ctrl-C ends a command that never writes, without a message about writes.
func TestWhatOnlyReadsEndsAtOnce(t *testing.T) {
	on, config := serve(t, []string{"home"})
	keep(t, on, "mall", func(*journal.Journal) {})
	seen, out := io.Pipe()
	var errOut bytes.Buffer
	code := make(chan int)
	go func() {
		defer out.Close() //nolint:errcheck // a pipe
		code <- run([]string{"stsmigrate", "status", "web", "-w", "-n", "mall", "--kubeconfig", config}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut})
	}()
	if _, err := seen.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, seen) //nolint:errcheck // what more it has to say
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != exitInterrupted || errOut.Len() > 0 {
		t.Errorf("it ends with %d and says %q, expected %d and nothing", got, errOut.String(), exitInterrupted)
	}
}

// Every name in readers is a command.
func TestWhatOnlyReads(t *testing.T) {
	known := map[string]bool{}
	for _, c := range new(app).command("stsmigrate").Commands() {
		known[c.Name()] = true
	}
	for _, name := range readers() {
		if !known[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}
