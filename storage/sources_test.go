package storage

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The admission policies accept the volumes of exactly these sources, by their names.
func TestThePoliciesKnowTheSources(t *testing.T) {
	const file = "../deploy/chart/templates/_sources.tpl"
	var has, source []string
	for _, s := range sources() {
		has = append(has, fmt.Sprintf("has(object.spec.%s)", s.name))
		source = append(source, has[len(has)-1]+fmt.Sprintf(" ? '%s'", s.name))
	}
	source = append(source, "'another source'")
	want := fmt.Sprintf(`{{/* Made of the sources in storage/sources.go: make generate */}}
{{- define "stsmigrate.sources" -}}%s{{- end }}
{{- define "stsmigrate.has-source" -}}%s{{- end }}
{{- define "stsmigrate.source" -}}%s{{- end }}
`, Sources(), strings.Join(has, " || "), strings.Join(source, " : "))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%v: %s is not made of the sources any more: make generate\n%s", err, file, got)
	}
}

// A volume of each source has a handle; a volume of any other source has none.
func TestEverySourceIsKnownByItsName(t *testing.T) {
	examples := map[string]corev1.PersistentVolumeSource{
		"csi": {CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
		"nfs": {NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}},
	}
	for _, s := range sources() {
		source, known := examples[s.name]
		if !known {
			t.Fatalf("there is no example of a volume with the source %s: add one", s.name)
		}
		got := SourceOf(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}})
		if got == nil || got.Handle == "" || got.Driver == "" || got.Share == "" {
			t.Errorf("%s: %+v", s.name, got)
		}
		if driver, _, _ := strings.Cut(got.Handle, "^"); neverAttached(driver) == s.attached {
			t.Errorf("%s: its handle %q does not say that it is attached: %v", s.name, got.Handle, s.attached)
		}
	}
	if SourceOf(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}) != nil {
		t.Error("a path of a node is no disk that two clusters share")
	}
}
