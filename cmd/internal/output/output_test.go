package output

import (
	"strings"
	"testing"
)

type row struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
}

func TestADocumentIsPrintedInEveryForm(t *testing.T) {
	d := Document{
		Value: List("Plan", []row{{"web", "Moved"}, {"db", ""}}), Names: []string{"plan/web", "plan/db"},
		Text: func() string { return "text\n" }, Wide: func() string { return "wide\n" },
	}
	for form, want := range map[string]string{
		"": "text\n", "wide": "wide\n", "name": "plan/web\nplan/db\n",
		"jsonpath={.items[*].name}":                     "web db",
		"jsonpath={.kind}":                              "PlanList",
		"go-template={{range .items}}{{.name}};{{end}}": "web;db;",
		"custom-columns=NAME:.name,STATE:.state":        "NAME   STATE\nweb    Moved\ndb     <none>\n",
		"custom-columns=N:{.name}":                      "N\nweb\ndb\n",
		"yaml":                                          "apiVersion: stsmigrate.dev/v1alpha1\nitems:\n- name: web\n  state: Moved\n- name: db\nkind: PlanList\n",
		"json":                                          "{\n  \"apiVersion\": \"stsmigrate.dev/v1alpha1\",\n  \"kind\": \"PlanList\",\n  \"items\": [\n    {\n      \"name\": \"web\",\n      \"state\": \"Moved\"\n    },\n    {\n      \"name\": \"db\"\n    }\n  ]\n}\n",
	} {
		var b strings.Builder
		if err := Print(&b, form, d); err != nil || b.String() != want {
			t.Errorf("-o %s: %v, %q, expected %q", form, err, b.String(), want)
		}
	}
	d.Wide, d.Names = nil, nil
	var b strings.Builder
	if err := Print(&b, "wide", d); err != nil || b.String() != "text\n" {
		t.Errorf("%v, %q", err, b.String())
	}
	if err := Print(&b, "name", d); err == nil {
		t.Error("what has no name is printed by its name")
	}
}

func TestAFormThatDoesNotExistIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	for form, want := range map[string]string{
		"xml": "expected wide, name", "json=x": "expected wide", "jsonpath={.a": "-o jsonpath", "go-template={{": "-o go-template",
		"custom-columns=": "HEADER:.FIELD", "custom-columns=A": "HEADER:.FIELD", "custom-columns=A:.x[": "custom-columns=A:.x[",
	} {
		if err := Check(form); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-o %s: %v, expected %q", form, err, want)
		}
	}
	for _, form := range []string{"", "wide", "name", "json", "yaml", "jsonpath={.a}", "custom-columns=A:.a"} {
		if err := Check(form); err != nil {
			t.Errorf("-o %s: %v", form, err)
		}
	}
}
