// Package bundle collects what helps to understand a plan into one archive, without secrets. It only reads, and reads
// no Secret. What cannot be read is noted in the archive, and keeps nothing else out of it.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// Archive is the content of an archive, by the name of the file.
type Archive map[string][]byte

// Write writes the archive as tar.gz, in a folder of the given name.
func (a Archive) Write(to io.Writer, folder string, now time.Time) error {
	zip := gzip.NewWriter(to)
	out := tar.NewWriter(zip)
	for _, name := range a.names() {
		head := &tar.Header{Name: path.Join(folder, name), Mode: 0o600, Size: int64(len(a[name])), ModTime: now, Typeflag: tar.TypeReg}
		if err := out.WriteHeader(head); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := out.Write(a[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

func (a Archive) names() []string {
	var out []string
	for name := range a {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Save writes the archive to a new file that only its owner can read.
func (a Archive) Save(file, folder string, now time.Time) error {
	to, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // the user names the file
	if os.IsExist(err) {
		return fmt.Errorf("%s exists already: name another file with --file", file)
	}
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	if err := errors.Join(a.Write(to, folder, now), to.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
