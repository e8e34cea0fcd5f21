package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed message, as Standard Webhooks names them.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// The length of a key in bytes, and how many keys sign at once while a key is replaced.
const (
	minKey  = 24
	maxKey  = 64
	maxKeys = 4
)

// ParseKeys reads keys, one a line, each in base64 with or without the prefix whsec_. No error quotes a key.
func ParseKeys(text string) ([][]byte, error) {
	var keys [][]byte
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "whsec_"))
		if err != nil || len(key) < minKey || len(key) > maxKey {
			return nil, fmt.Errorf("line %d is no key: expected %d to %d bytes in base64, such as `echo whsec_$(openssl rand -base64 32)` prints", len(keys)+1, minKey, maxKey)
		}
		keys = append(keys, key)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("there is no key: expected a line such as `echo whsec_$(openssl rand -base64 32)` prints")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("there are %d keys, expected at most %d", len(keys), maxKeys)
	}
	return keys, nil
}

// sign adds the headers with which a receiver verifies who has sent a body, and when.
func sign(h http.Header, keys [][]byte, id string, now time.Time, body []byte) {
	at := strconv.FormatInt(now.Unix(), 10)
	var all []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, at)
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, at)
	h.Set(HeaderSignature, strings.Join(all, " "))
}
