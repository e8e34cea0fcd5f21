package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/internal/preflight/check"
	"github.com/stsmigrate/stsmigrate/plans"
)

// ConsentMap is the ConfigMap with which a namespace agrees that an orchestrator writes to it for a plan. An
// orchestrator has rights that the requesting user may lack: without this consent, any user who can hand it a
// plan could have it move any set anywhere.
const ConsentMap = "stsmigrate-consent"

// The keys of ConsentMap: the kinds of consent that its lines give.
const (
	movesTo    = "moves-to"    // a set of the namespace leaves for another one
	movesFrom  = "moves-from"  // a set comes into the namespace
	answersFor = "answers-for" // the pods of a set elsewhere are found under a Service of the namespace
)

// Party is a namespace that a plan writes to, and the consent that the plan needs from it.
type Party struct {
	// Side is the side whose cluster has the namespace.
	Side      plans.Side
	Namespace string
	key       string
	// own is the set or the Service of the namespace, and other the set at the other end.
	own   string
	other plans.Ref
}

// Parties returns all namespaces that a plan writes to.
func Parties(p *plans.Plan) []Party {
	s, d := p.Source, p.Destination
	out := []Party{{plans.Source, s.Namespace, movesTo, s.Name, d}, {plans.Destination, d.Namespace, movesFrom, d.Name, s}}
	for _, dir := range p.Directories() {
		if dir.Lists == "" {
			out = append(out, Party{dir.On, dir.Namespace, answersFor, p.Names.Service, p.On(dir.On.Other())})
		}
	}
	return out
}

// anything stands for any value of one part of an agreement.
const anything = "*"

// agreement is one line of ConsentMap:
//
//	OWN CLUSTER/NAMESPACE/SET plan=ID hash=HASH until=TIME
//
// OWN is the set or Service of the namespace itself. CLUSTER/NAMESPACE/SET is the set at the other end;
// CLUSTER is the UID of its cluster's kube-system namespace. TIME is as in RFC 3339. Each part may be * for
// any value.
type agreement struct {
	own                      string
	cluster, namespace, name string
	plan, hash, until        string
}

var errNoAgreement = errors.New("expected OWN CLUSTER/NAMESPACE/SET plan=ID hash=HASH until=TIME")

// parseAgreement parses a line. A line with an unknown part, or without a known one, agrees to nothing: its
// intent cannot be guessed.
func parseAgreement(line string) (agreement, error) {
	words := strings.Fields(line)
	if len(words) != 5 {
		return agreement{}, errNoAgreement
	}
	a := agreement{own: words[0]}
	at := strings.Split(words[1], "/")
	if len(at) != 3 {
		return agreement{}, errNoAgreement
	}
	a.cluster, a.namespace, a.name = at[0], at[1], at[2]
	parts := map[string]*string{"plan": &a.plan, "hash": &a.hash, "until": &a.until}
	for _, w := range words[2:] {
		key, value, ok := strings.Cut(w, "=")
		into := parts[key]
		if !ok || into == nil || *into != "" || value == "" {
			return agreement{}, errNoAgreement
		}
		*into = value
	}
	if _, err := time.Parse(time.RFC3339, a.until); a.until != anything && err != nil {
		return agreement{}, fmt.Errorf("until=%s is no time such as 2026-01-31T00:00:00Z", a.until)
	}
	return a, nil
}

func (a agreement) String() string {
	return fmt.Sprintf("%s %s/%s/%s plan=%s hash=%s until=%s", a.own, a.cluster, a.namespace, a.name, a.plan, a.hash, a.until)
}

// agreementOf returns the line by which a namespace agrees to one plan only.
func agreementOf(p *plans.Plan, n Party, until time.Time) agreement {
	o := n.other
	return agreement{n.own, string(o.Cluster), o.Namespace, o.Name, p.ID, p.Hash, until.UTC().Format(time.RFC3339)}
}

// about reports whether the line is about the two ends of a plan. refuses returns the reason why such a line
// still does not agree to the plan, or "".
func (a agreement) about(n Party) bool {
	return is(a.own, n.own) && is(a.cluster, string(n.other.Cluster)) && is(a.namespace, n.other.Namespace) && is(a.name, n.other.Name)
}

func (a agreement) refuses(p *plans.Plan, now time.Time) string {
	end, _ := time.Parse(time.RFC3339, a.until) // parseAgreement has read it
	switch {
	case !is(a.plan, p.ID):
		return fmt.Sprintf("it agrees to plan %s, and not to %s", a.plan, p.ID)
	case !is(a.hash, p.Hash):
		return fmt.Sprintf("it agrees to plan %s with another content: %s is its hash, and %s that of the plan", p.ID, a.hash, p.Hash)
	case a.until != anything && !now.Before(end):
		return "it has agreed until " + a.until
	}
	return ""
}

// wide reports whether the line agrees to more than one plan until a given time.
func (a agreement) wide() bool {
	return slices.Contains([]string{a.own, a.cluster, a.namespace, a.name, a.plan, a.hash, a.until}, anything)
}

func is(have, want string) bool { return have == anything || have == want }

// Agrees returns the line by which a namespace agrees to a plan, or the reason why none does.
func (n Party) Agrees(p *plans.Plan, cm *corev1.ConfigMap, now time.Time) (by agreement, why string) {
	why = "it has no line for " + n.own + " under " + n.key
	for line := range strings.Lines(cm.Data[n.key]) {
		line = strings.TrimSpace(line)
		a, err := parseAgreement(line)
		switch {
		case line == "":
		case err != nil:
			why = fmt.Sprintf("its line %q under %s says nothing: %v", check.Few(strings.Fields(line)), n.key, err)
		case a.about(n):
			no := a.refuses(p, now)
			if no == "" {
				return a, ""
			}
			why = no
		}
	}
	return agreement{}, why
}

// Agree returns the ConfigMap by which a namespace agrees to a plan until a given time, in addition to its
// other agreements in have (nil for none). It replaces an earlier agreement to this plan.
func (n Party) Agree(p *plans.Plan, until time.Time, have *corev1.ConfigMap) *corev1.ConfigMap {
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: ConsentMap}, Data: map[string]string{}}
	if have != nil {
		next = have.DeepCopy()
	}
	next.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	n.forget(p, next)
	next.Data[n.key] += agreementOf(p, n, until).String() + "\n"
	return next
}

// Withdraw returns the ConfigMap without the lines for a plan, and whether it had any. Lines that agree to
// any plan stay: they are not about this one.
func (n Party) Withdraw(p *plans.Plan, have *corev1.ConfigMap) (next *corev1.ConfigMap, less bool) {
	next = have.DeepCopy()
	n.forget(p, next)
	return next, next.Data[n.key] != have.Data[n.key]
}

func (n Party) forget(p *plans.Plan, cm *corev1.ConfigMap) {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	kept := ""
	for line := range strings.Lines(cm.Data[n.key]) {
		if a, err := parseAgreement(line); err == nil && a.plan == p.ID || strings.TrimSpace(line) == "" {
			continue
		}
		kept += strings.TrimRight(line, "\n") + "\n"
	}
	if cm.Data[n.key] = kept; kept == "" {
		delete(cm.Data, n.key)
	}
}

// ForConsent returns the rights that an orchestrator needs to read the consent of a side's namespaces.
func ForConsent(p *plans.Plan, side plans.Side) []part.Right {
	var out []part.Right
	for _, n := range Parties(p) {
		if n.Side == side {
			out = append(out, part.Right{Resource: "configmaps", Verbs: []string{"get"}, Names: []string{ConsentMap}, Namespace: n.Namespace})
		}
	}
	return out
}
