package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/stsmigrate/stsmigrate/docs/schemas"
)

func TestSchemasArePrintedWithoutAnyCluster(t *testing.T) {
	for _, kind := range schemas.Kinds() {
		want, err := schemas.Of(kind)
		if err != nil {
			t.Fatal(err)
		}
		if code, out, errs := said(t, "schema", strings.ToLower(kind)); code != exitDone || errs != "" || out != string(want) || !json.Valid([]byte(out)) {
			t.Errorf("%s: exit code %d: %s", kind, code, errs)
		}
		var out bytes.Buffer
		run([]string{"kubectl-stsmigrate", "schema", kind}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
		if out.String() != string(want) {
			t.Errorf("%s: the plugin prints another schema", kind)
		}
	}
	if code, out, _ := said(t, "schema"); code != exitDone || out != strings.Join(schemas.Kinds(), "\n")+"\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out, errs := said(t, "schema", "Pod"); code != exitError || out != "" || !strings.Contains(errs, "expected one of Migration") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
