package notify

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Target is the receiver.
type Target struct {
	URL string
	// Dir holds the file key, with the keys that sign, and, if the certificate of the receiver is of an
	// authority of its own, the file ca.crt.
	Dir string
	// PlainHTTP allows http to other machines too.
	PlainHTTP bool
}

// attemptTimeout is how long one request may take.
const attemptTimeout = 10 * time.Second

// Validate returns why a receiver is not sent to, without its path or parameters, which may be secret.
func (t Target) Validate() error {
	u, err := url.Parse(t.URL)
	if err != nil {
		return errors.New("the URL of the receiver cannot be parsed: expected one such as https://HOST/PATH")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "":
		return fmt.Errorf("the URL of the receiver begins with %q, expected https:// and a host", u.Scheme+":")
	case u.User != nil:
		return errors.New("the URL of the receiver has a user name: the messages are signed, and need no password")
	case u.Fragment != "":
		return errors.New("the URL of the receiver has a fragment (#), which is never sent")
	case u.Scheme == "http" && !t.PlainHTTP && !loopback(u.Hostname()):
		return fmt.Errorf("the receiver %s would be sent to without encryption: use https, or allow it with --notify-plain-http", u.Host)
	}
	return nil
}

// loopback reports whether a host is this machine, whatever DNS answers.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Keys reads the keys anew: the files of a mounted Secret change.
func (t Target) Keys() ([][]byte, error) {
	file := filepath.Join(t.Dir, "key")
	raw, err := os.ReadFile(file) //nolint:gosec // the administrator names the folder
	if err != nil {
		return nil, fmt.Errorf("the key of the notifications: %w", err)
	}
	keys, err := ParseKeys(string(raw))
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", file, err)
	}
	return keys, nil
}

// Client returns a client that follows no redirect and waits for no answer longer than an attempt may take.
func (t Target) Client() (*http.Client, error) {
	verified := &tls.Config{MinVersion: tls.VersionTLS12}
	file := filepath.Join(t.Dir, "ca.crt")
	switch raw, err := os.ReadFile(file); { //nolint:gosec // the administrator names the folder
	case os.IsNotExist(err):
	case err != nil:
		return nil, fmt.Errorf("the authority of the receiver's certificate: %w", err)
	default:
		verified.RootCAs = x509.NewCertPool()
		if !verified.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("file %s has no certificate, expected those of the receiver's authority in PEM", file)
		}
	}
	return &http.Client{
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: verified, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		},
	}, nil
}

// brief returns an error of a request without the URL, whose path may be secret.
func brief(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
