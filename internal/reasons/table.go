package reasons

import (
	"embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed table/*.yaml
var files embed.FS

// Explanation is what a user needs to know about a reason. Words in capitals, such as PLAN, stand for names that the
// reason itself has.
type Explanation struct {
	ID    ID     `json:"id"`
	Topic string `json:"topic"`
	// What happened, and what is Unchanged by it.
	What      string `json:"what"`
	Unchanged string `json:"unchanged"`
	// Do is what to run, in this order.
	Do []Action `json:"do"`
}

// Action is one command.
type Action struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// topics are the files of the table, in the order in which users read them.
func topics() []string {
	return []string{"process", "sets", "storage", "budgets", "gates", "records"}
}

// Table returns every explanation, by topic.
func Table() ([]Explanation, error) {
	var out []Explanation
	for _, topic := range topics() {
		raw, err := files.ReadFile("table/" + topic + ".yaml")
		if err != nil {
			return nil, err
		}
		var part []Explanation
		if err := yaml.UnmarshalStrict(raw, &part); err != nil {
			return nil, fmt.Errorf("table/%s.yaml: %w", topic, err)
		}
		for k := range part {
			part[k].Topic = topic
		}
		out = append(out, part...)
	}
	return out, nil
}

// Find returns the explanation of a reason, in whatever case its ID is written.
func Find(table []Explanation, id string) (Explanation, bool) {
	for _, e := range table {
		if strings.EqualFold(string(e.ID), id) {
			return e, true
		}
	}
	return Explanation{}, false
}

// Text returns the explanation for a terminal.
func (e Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nWhat happened:\n  %s\n\nWhat is unchanged:\n  %s\n\nWhat to run, in this order:\n", e.ID, e.What, e.Unchanged)
	for k, a := range e.Do {
		fmt.Fprintf(&b, "  %d. %s\n     %s\n", k+1, a.Run, a.Why)
	}
	b.WriteString("\nOn the web: " + Runbook(e.ID) + "\n")
	return b.String()
}
