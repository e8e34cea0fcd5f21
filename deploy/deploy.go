// Package deploy contains everything that is installed in clusters: one chart, from which helm, kustomize and
// `stsmigrate install` render the same objects. It contacts no cluster.
package deploy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/util/validation"
)

// InstallLabel is set on the cluster-scoped objects of an install. Its value is the namespace of the install.
const InstallLabel = "stsmigrate.dev/install"

//go:embed all:chart
var files embed.FS

// load reads the chart.
func load() (*chart.Chart, error) {
	var all []*archive.BufferedFile
	err := fs.WalkDir(files, "chart", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := files.ReadFile(path)
		all = append(all, &archive.BufferedFile{Name: strings.TrimPrefix(path, "chart/"), Data: raw})
		return err
	})
	if err != nil {
		return nil, err
	}
	return loader.LoadFiles(all)
}

// Render renders the objects of a namespace as YAML documents, in the order in which they must be created.
// values are the values of the chart (deploy/chart/values.yaml). A value that its schema does not define is
// an error, and nothing is rendered. version is the version of the images, unless a value overrides it.
func Render(namespace, version string, values map[string]any) ([]byte, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	if version != "" {
		c.Metadata.AppVersion = version
	}
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		return nil, fmt.Errorf("%q is no name for a namespace: %s", namespace, wrong[0])
	}
	all, err := util.CoalesceValues(c, values)
	if err != nil {
		return nil, err
	}
	if err := util.ValidateAgainstSingleSchema(all, c.Schema); err != nil {
		return nil, fmt.Errorf("values: %s (deploy/chart/values.yaml has them all)", strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(err.Error()), "- "), "\n- ", "; "))
	}
	with, err := util.ToRenderValuesWithSchemaValidation(c, values, common.ReleaseOptions{Name: "stsmigrate", Namespace: namespace, IsInstall: true}, nil, true)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, with)
	if err != nil {
		return nil, err
	}
	hooks, objects, err := release.SortManifests(rendered, nil, release.InstallOrder)
	if err != nil {
		return nil, err
	}
	if len(hooks) > 0 {
		return nil, fmt.Errorf("the chart has the hook %s, which only helm can run", hooks[0].Path)
	}
	if len(objects) == 0 {
		return nil, errors.New("with these values there is nothing to install")
	}
	var out bytes.Buffer
	for _, o := range objects {
		fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(o.Content))
	}
	return out.Bytes(), nil
}

// components maps each installable component to the values that are true for it.
func components() map[string][]string {
	return map[string][]string{
		"account":         {"account.create"},
		"orchestrator":    {"account.create", "orchestrator.enabled"},
		"slicecontroller": {"slicecontroller.enabled"},
		"webhook":         {"slicecontroller.enabled", "slicecontroller.webhook.enabled"},
		"policies":        {"policies.enabled"},
		"monitoring":      {"monitoring.enabled"},
	}
}

// Components lists the names that Values accepts, sorted.
func Components() []string { return slices.Sorted(maps.Keys(components())) }

// Values returns the values that install these components, their namespace, and nothing else. An unknown name
// is an error.
func Values(names ...string) (map[string]any, error) {
	said := []string{"namespace.create=true", "account.create=false", "orchestrator.enabled=false"}
	for _, name := range names {
		on, known := components()[name]
		if !known {
			return nil, fmt.Errorf("there is no component %q: expected %s", name, strings.Join(Components(), ", "))
		}
		for _, v := range on {
			said = append(said, v+"=true")
		}
	}
	return strvals.Parse(strings.Join(said, ","))
}
