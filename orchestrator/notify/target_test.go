package notify

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Messages go by https, or to this machine, unless the administrator allows plain http.
func TestMessagesAreNotSentInTheClear(t *testing.T) {
	for _, c := range []struct {
		url   string
		plain bool
		ok    bool
	}{
		{"https://hooks.example/secret", false, true},
		{"https://hooks.example:8443", false, true},
		{"http://127.0.0.1:8080/secret", false, true},
		{"http://[::1]:8080", false, true},
		{"http://localhost", false, true},
		{"http://hooks.example/secret", false, false},
		{"http://hooks.example/secret", true, true},
		{"http://localhost.example/secret", false, false},
		{"http://127.0.0.1.example/secret", false, false},
		{"https://user:secret@hooks.example", true, false},
		{"https://hooks.example/#secret", true, false},
		{"https:///secret", true, false},
		{"https:secret", true, false},
		{"ftp://hooks.example/secret", true, false},
		{"hooks.example/secret", true, false},
		{"https://hooks.example/%zzsecret", true, false},
		{"", true, false},
	} {
		err := Target{URL: c.url, PlainHTTP: c.plain}.Validate()
		if (err == nil) != c.ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q, plain %t: %v", c.url, c.plain, err)
		}
	}
}

// A receiver whose certificate is of an unknown authority gets nothing, unless the Secret has that authority.
func TestTheReceiverIsVerified(t *testing.T) {
	got := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got++ }))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, c := range map[string]struct {
		ca   string
		want Result
		got  int
	}{
		"without its authority": {"", Retried, 0},
		"with its authority":    {string(authority), Delivered, 1},
	} {
		got = 0
		to := Target{URL: server.URL, Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(to.Dir, "key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.ca != "" {
			if err := os.WriteFile(filepath.Join(to.Dir, "ca.crt"), []byte(c.ca), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		client, err := to.Client()
		if err != nil {
			t.Fatal(err)
		}
		s, _ := sender(nil)
		s.URL, s.Client, s.Keys = to.URL, client, to.Keys
		if result, _, why := s.attempt(t.Context(), of("web", "Moving")); result != c.want || got != c.got {
			t.Errorf("%s: %s, %s, %d got", name, result, why, got)
		}
	}
	broken := Target{URL: server.URL, Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(broken.Dir, "ca.crt"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Client(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a file that is no certificate: %v", err)
	}
	if _, err := broken.Keys(); err == nil {
		t.Error("a folder without a key is accepted")
	}
}
