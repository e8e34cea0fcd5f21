package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// file is one file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarball packs files so that only their names, modes and contents matter: all of them belong to root and
// have the same time.
func tarball(at time.Time, files ...file) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
