package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// columns returns the form custom-columns=HEADER:.FIELD,... as kubectl has it: one row for each item of a list.
func columns(spec string) (write, error) {
	var heads []string
	var fields []*jsonpath.JSONPath
	for _, part := range strings.Split(spec, ",") {
		head, field, ok := strings.Cut(part, ":")
		if !ok || head == "" || field == "" {
			return nil, fmt.Errorf("-o custom-columns=%s: expected HEADER:.FIELD,HEADER:.FIELD", spec)
		}
		path := jsonpath.New(head).AllowMissingKeys(true)
		if err := path.Parse("{." + strings.TrimPrefix(strings.Trim(field, "{}"), ".") + "}"); err != nil {
			return nil, fmt.Errorf("-o custom-columns=%s: %w", part, err)
		}
		heads, fields = append(heads, head), append(fields, path)
	}
	return func(to io.Writer, d Document) error {
		items, err := items(d.Value)
		if err != nil {
			return err
		}
		rows := [][]string{heads}
		for _, item := range items {
			var row []string
			for _, f := range fields {
				var cell bytes.Buffer
				if err := f.Execute(&cell, item); err != nil {
					return err
				}
				if cell.Len() == 0 {
					cell.WriteString("<none>")
				}
				row = append(row, cell.String())
			}
			rows = append(rows, row)
		}
		_, err = io.WriteString(to, Table(rows))
		return err
	}, nil
}

// items returns the items of a list, or the value itself.
func items(v any) ([]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []any `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err == nil && list.Items != nil {
		return list.Items, nil
	}
	var one any
	if err := json.Unmarshal(raw, &one); err != nil {
		return nil, err
	}
	return []any{one}, nil
}
