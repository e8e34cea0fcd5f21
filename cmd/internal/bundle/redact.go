package bundle

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
)

// hidden stands for every value that is left out.
const hidden = "(left out)"

// Redactor leaves out what could be a secret.
type Redactor struct{ credentials []pattern }

// NewRedactor returns a Redactor.
func NewRedactor() *Redactor {
	return &Redactor{credentials: patterns()}
}

// Redact returns a document as YAML without what could be a secret. It goes by the names of fields, so it holds for
// every kind of object: values of environment variables, commands and their arguments, contents of ConfigMaps and
// Secrets, headers, queries, what gates expect, attributes of volumes and of their attachments, options of mounts,
// what containers said last, and annotations that are not Kubernetes' or this program's own. Names stay: they say
// where a value comes from.
func (c *Redactor) Redact(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	from := json.NewDecoder(bytes.NewReader(raw))
	from.UseNumber()
	if err := from.Decode(&tree); err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(c.clean(tree)); err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(raw)
}

// clean returns a value without what could be a secret.
func (c *Redactor) clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			v[name] = c.cleanField(name, value)
		}
		return v
	case []any:
		for k := range v {
			v[k] = c.clean(v[k])
		}
		return v
	case string:
		return c.Scrubbed(v)
	}
	return v
}

// cleanField returns the value of a field without what could be a secret.
func (c *Redactor) cleanField(name string, v any) any {
	switch strings.ToLower(name) {
	case "env", "httpheaders":
		return c.without(v, "value")
	case "command", "args", "data", "binarydata", "stringdata", "volumeattributes", "attachmentmetadata", "changes", "summary",
		"expect", "expression":
		return emptied(v)
	case "options": // of a FlexVolume; those of a pod's DNS are a list
		if all, ok := v.(map[string]any); ok {
			return emptied(all)
		}
	case "mountoptions":
		return c.mountOptions(v)
	case "path":
		if at, query, ok := cutQuery(v); ok && query != "" {
			return c.Scrubbed(at) + "?" + hidden
		}
	case "terminated", "waiting": // states of a container; a journal has a text of the second name
		if state, ok := c.clean(v).(map[string]any); ok {
			return c.without(state, "message")
		}
	case "annotations":
		return c.annotations(v)
	case "patch":
		return c.embedded(v)
	}
	return c.clean(v)
}

// without empties one field of a map, or of each map of a list.
func (c *Redactor) without(v any, field string) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if strings.EqualFold(name, field) {
				v[name] = hidden
			}
		}
	case []any:
		for k := range v {
			v[k] = c.without(v[k], field)
		}
	default:
		return emptied(v)
	}
	return c.clean(v)
}

// emptied keeps the shape of a value and none of its texts.
func emptied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = hidden
		}
		return v
	case []any:
		for k := range v {
			v[k] = hidden
		}
		return v
	case nil:
		return nil
	}
	return hidden
}

// cutQuery splits the path of a request.
func cutQuery(v any) (at, query string, ok bool) {
	text, _ := v.(string)
	return strings.Cut(text, "?")
}

// plainOption matches options of a mount that are no secret: words, and numbers, such as versions and modes.
var plainOption = regexp.MustCompile(`^[a-z_]+$|^[a-z_]+=[0-9]+(\.[0-9]+)*[kmg]?$`)

// mountOptions keeps the names of the options of a mount, and plain values.
func (c *Redactor) mountOptions(v any) any {
	switch v := v.(type) {
	case []any:
		for k := range v {
			v[k] = c.mountOptions(v[k])
		}
		return v
	case string:
		all := strings.Split(v, ",")
		for k, option := range all {
			switch name, _, set := strings.Cut(option, "="); {
			case plainOption.MatchString(option):
			case set:
				all[k] = name + "=" + hidden
			default: // the rest of a value with a comma in it
				all[k] = hidden
			}
		}
		return c.Scrubbed(strings.Join(all, ","))
	}
	return emptied(v)
}

// annotations keeps the values that Kubernetes and this program have written.
func (c *Redactor) annotations(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return emptied(v)
	}
	for name, value := range all {
		prefix, rest, _ := strings.Cut(name, "/")
		known := prefix == "stsmigrate.dev" || strings.HasSuffix(prefix, "kubernetes.io") && prefix != "kubectl.kubernetes.io"
		if !known || rest == "" {
			all[name] = hidden
			continue
		}
		if all[name] = c.embedded(value); rest == "mount-options" {
			all[name] = c.mountOptions(value)
		}
	}
	return all
}

// embedded cleans a text that is a document of its own.
func (c *Redactor) embedded(v any) any {
	text, ok := v.(string)
	if !ok {
		return emptied(v)
	}
	if !strings.ContainsAny(text, "{[:\n") {
		return c.Scrubbed(text)
	}
	raw, err := plainyaml.ToJSON([]byte(text))
	if err != nil {
		return hidden
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return hidden
	}
	switch whole := tree.(type) {
	case string:
		return c.Scrubbed(text)
	case []any: // operations of a JSON patch: a path says what a value is, and no name of a field
		tree = c.without(whole, "value")
	}
	if raw, err = json.Marshal(c.clean(tree)); err != nil {
		return hidden
	}
	return string(raw)
}
