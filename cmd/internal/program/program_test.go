package program

import (
	"crypto/x509"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestSaysWhatItWasMadeFrom(t *testing.T) {
	host := "go: " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\nwrites: x/v1\n"
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision, at := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}
	for name, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"a release":               {"v1.2.3", built("v1.2.3", revision, at), "p v1.2.3\ncommit: abc of 2026-01-02T03:04:05Z\n"},
		"a tree with changes":     {"", built("v1.2.4-0.2026+dirty", revision, at, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "p v1.2.4-0.2026+dirty\ncommit: abc of 2026-01-02T03:04:05Z, with changes\n"},
		"by go install":           {"", built("v1.2.3"), "p v1.2.3\ncommit: unknown\n"},
		"from a folder":           {"", built("(devel)"), "p devel\ncommit: unknown\n"},
		"without any information": {"", nil, "p devel\ncommit: unknown\n"},
	} {
		if got := about("p", c.linked, "x/v1", c.info); got != c.want+host {
			t.Errorf("%s: got\n%s, expected\n%s", name, got, c.want+host)
		}
	}
}

// An image that holds nothing but a program has no files of certificate authorities.
func TestKnowsAuthoritiesWhereTheSystemHasNone(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") == "/nowhere" {
		pool, err := x509.SystemCertPool()
		if err != nil || pool.Equal(x509.NewCertPool()) {
			t.Errorf("no authorities: %v", err)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only images of Linux are made")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), "SSL_CERT_FILE=/nowhere", "SSL_CERT_DIR=/nowhere")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
