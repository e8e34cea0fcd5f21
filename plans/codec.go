package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/stsmigrate/stsmigrate/plans/plainyaml"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

// ErrEdited reports that a plan was edited after it was made.
var ErrEdited = errors.New("the plan was edited after it was made: its hash does not match its content; make a new one with `stsmigrate plan`")

// Fingerprinted returns a short hash over the JSON form of v.
func Fingerprinted(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// Seal sets the hash, and verify compares it. The hash covers all fields, known or unknown, in the
// order of their names, because the order in a file has no meaning.
func (p *Plan) Seal() error {
	open := *p
	open.Hash = ""
	raw, err := json.Marshal(open)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &fields); err != nil {
		return err
	}
	p.Hash, err = Fingerprinted(fields)
	return err
}

func (p *Plan) verify() error {
	again := *p
	if err := again.Seal(); err != nil {
		return err
	}
	if again.Hash == p.Hash {
		return nil
	}
	again.Hash = ""
	if was, err := Fingerprinted(again); err != nil || was != p.Hash { // the hash of releases without unknown fields
		return errors.Join(err, ErrEdited)
	}
	return nil
}

// Encode returns the YAML form of a plan, a journal or a migration.
func Encode(v any) ([]byte, error) { return yaml.Marshal(v) }

// DecodePlan reads a plan. It refuses another version, an edited plan and any plan that build.Plan would
// not make, each with one sentence.
func DecodePlan(raw []byte) (*Plan, error) {
	if err := tooLong(raw); err != nil {
		return nil, err
	}
	var p Plan
	var err error
	if p.Read, err = DecodeKind(raw, PlanKind, &p); err != nil {
		return nil, err
	}
	if err := p.verify(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &p, nil
}

// DecodeKind checks kind and version before it reads the rest, so that the error for a file of another
// version names the version. It returns the whole document if it has unknown fields, and nil
// otherwise. The caller decides whether unknown fields are allowed.
func DecodeKind(raw []byte, kind string, into any) (unknown json.RawMessage, err error) {
	var head struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Requires   []string `json:"requires"`
	}
	if !json.Valid(raw) { // the journal is JSON, because every pass reads it
		if raw, err = plainyaml.ToJSON(raw); err != nil {
			return nil, fmt.Errorf("not a %s: malformed YAML: %w", kind, err)
		}
	}
	if err := weight.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("not a %s: %w", kind, err)
	}
	if head.Kind != kind {
		return nil, fmt.Errorf("kind is %q, expected %q", head.Kind, kind)
	}
	if head.APIVersion != APIVersion {
		return nil, fmt.Errorf("the %s is of version %q, this program reads %q: use the stsmigrate that made it", kind, head.APIVersion, APIVersion)
	}
	head.Requires = slices.DeleteFunc(head.Requires, func(what string) bool { return supported(kind, what) })
	if len(head.Requires) > 0 {
		return nil, fmt.Errorf("this %s was written by a newer stsmigrate and requires support for %q, which this release does not have: use the newer release", kind, head.Requires)
	}
	var strict []error
	err = weight.Guard(raw, func() error {
		strict, err = kjson.UnmarshalStrict(raw, into)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("malformed %s: %w", kind, err)
	}
	for _, e := range strict {
		if !strings.HasPrefix(e.Error(), "unknown field") {
			return nil, fmt.Errorf("malformed %s: %w", kind, e)
		}
		unknown = raw
	}
	return unknown, nil
}

// DecodeStrictly decodes JSON and refuses unknown and duplicate fields, by their full path.
func DecodeStrictly(raw []byte, into any) error {
	var strict []error
	err := weight.Guard(raw, func() (err error) {
		strict, err = kjson.UnmarshalStrict(raw, into)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(strict[:min(1, len(strict))]...)
}
