package plans

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// ErrEdited says that a plan is not what it was when it was made.
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

// seal fills in the hash; verify compares it.
func (p *Plan) seal() error {
	open := *p
	open.Hash = ""
	hash, err := Fingerprinted(open)
	p.Hash = hash
	return err
}

func (p *Plan) verify() error {
	again := *p
	if err := again.seal(); err != nil {
		return err
	}
	if again.Hash != p.Hash {
		return ErrEdited
	}
	return nil
}

// Encode gives the YAML form of a plan, a journal or a migration.
func Encode(v any) ([]byte, error) { return yaml.Marshal(v) }

// DecodePlan reads a plan. It refuses another version, unknown fields, an
// edited plan and whatever Build would not have made, each with one sentence.
func DecodePlan(raw []byte) (*Plan, error) {
	if err := tooLong(raw); err != nil {
		return nil, err
	}
	var p Plan
	if err := decode(raw, PlanKind, &p); err != nil {
		return nil, err
	}
	if err := p.verify(); err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return &p, nil
}

// DecodeJournal reads the journal of the given plan.
func DecodeJournal(raw []byte, p *Plan) (*Journal, error) {
	var j Journal
	if err := decode(raw, JournalKind, &j); err != nil {
		return nil, err
	}
	if j.Plan != p.ID {
		return nil, fmt.Errorf("the journal belongs to plan %s, not to %s: it was left by an earlier plan of the same name", j.Plan, p.ID)
	}
	if j.Hash == "" {
		j.Hash = p.Hash
	}
	if j.Hash != p.Hash {
		return nil, fmt.Errorf("the journal belongs to plan %s as it was (hash %s), and the plan there has the same ID and another content (hash %s): restore the plan from a backup, or the file that was applied", p.ID, j.Hash, p.Hash)
	}
	if err := j.validate(p); err != nil {
		return nil, err
	}
	return &j, nil
}

// decode checks kind and version before it reads the rest, so that a file of
// another version is called that, and not a file with unknown fields.
func decode(raw []byte, kind string, into any) error {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if !json.Valid(raw) { // the journal is JSON: it is read at every pass
		var err error
		if raw, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return fmt.Errorf("not a %s: malformed YAML: %w", kind, err)
		}
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("not a %s: %w", kind, err)
	}
	if head.Kind != kind {
		return fmt.Errorf("kind is %q, expected %q", head.Kind, kind)
	}
	if head.APIVersion != APIVersion {
		return fmt.Errorf("the %s is of version %q, this program reads %q: use the stsmigrate that made it", kind, head.APIVersion, APIVersion)
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(into); err != nil {
		return fmt.Errorf("malformed %s: %w", kind, err)
	}
	return nil
}
