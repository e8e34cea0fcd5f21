// Package output writes what a command has found in the form that the user asks for with -o, as kubectl does.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/stsmigrate/stsmigrate/cmd/internal/program"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Forms describes the forms, for the help of -o.
const Forms = "wide, name, json, yaml, jsonpath=TEMPLATE, go-template=TEMPLATE or custom-columns=HEADER:.FIELD,... instead of text"

// Document is what a command has found. Only Value and Text must be set.
type Document struct {
	// Value is what programs read.
	Value any
	// Text is what users read, and Wide the same with more columns.
	Text, Wide func() string
	// Names are the names of what was found, for -o name.
	Names []string
}

// write writes a document in one form.
type write func(io.Writer, Document) error

// Check returns an error for a form that does not exist, or that is not well-formed. It is called BEFORE the network.
func Check(form string) error {
	_, err := writer(form)
	return err
}

// Print writes a document in a form.
func Print(to io.Writer, form string, d Document) error {
	w, err := writer(form)
	if err != nil {
		return err
	}
	return w(to, d)
}

func writer(form string) (write, error) {
	kind, argument, _ := strings.Cut(form, "=")
	switch kind {
	case "", "wide", "name", "json", "yaml":
		if argument != "" {
			return nil, fmt.Errorf("-o %s: expected %s", form, Forms)
		}
		return plain(kind), nil
	case "custom-columns":
		return columns(argument)
	}
	flags := genericclioptions.NewKubeTemplatePrintFlags()
	if !slices.Contains(flags.AllowedFormats(), kind) {
		return nil, fmt.Errorf("-o %s: expected %s%s", form, Forms, program.DidYouMean(kind, append(flags.AllowedFormats(), "wide", "name", "json", "yaml", "custom-columns")))
	}
	p, err := flags.ToPrinter(form)
	if err != nil {
		return nil, fmt.Errorf("-o %s: %w", form, err)
	}
	return func(to io.Writer, d Document) error {
		o, err := object(d.Value)
		if err != nil {
			return err
		}
		return p.PrintObj(o, to)
	}, nil
}

func plain(kind string) write {
	return func(to io.Writer, d Document) error {
		var raw []byte
		var err error
		switch {
		case kind == "yaml":
			raw, err = plans.Encode(d.Value)
		case kind == "json":
			raw, err = json.MarshalIndent(d.Value, "", "  ")
			raw = append(raw, '\n')
		case kind == "name" && d.Names == nil:
			return fmt.Errorf("-o name: what this command prints has no name")
		case kind == "name":
			raw = []byte(lines(d.Names))
		case kind == "wide" && d.Wide != nil:
			raw = []byte(d.Wide())
		default:
			raw = []byte(d.Text())
		}
		if err != nil {
			return err
		}
		_, err = to.Write(raw)
		return err
	}
}

func lines(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, "\n") + "\n"
}

// object returns a value as the printers take it.
func object(v any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, json.Unmarshal(raw, &o.Object)
}

// Listing is a list of documents, in the form of a list of Kubernetes.
type Listing[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

// List returns a list of a kind.
func List[T any](kind string, items []T) Listing[T] {
	if items == nil {
		items = []T{}
	}
	return Listing[T]{APIVersion: plans.APIVersion, Kind: kind + "List", Items: items}
}

// Table formats rows in columns.
func Table(rows [][]string) string {
	var b strings.Builder
	w := printers.GetNewTabWriter(&b)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	_ = w.Flush() // into memory
	return b.String()
}
