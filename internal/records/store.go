package records

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/reasons"
	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/plans/journal"
	"github.com/stsmigrate/stsmigrate/plans/weight"
)

const (
	planKey    = "plan.yaml"
	journalKey = "journal.json"
)

// Store keeps one plan and its journal in two ConfigMaps of the home namespace. The plan is in an
// immutable one. The journal is in one that every write replaces conditionally.
type Store struct {
	home client.Client
	name types.NamespacedName // of the plan
}

// NewStore returns the store of the plan of that name. The client must read live.
func NewStore(home client.Client, namespace, plan string) *Store {
	return &Store{home: home, name: types.NamespacedName{Namespace: namespace, Name: plan}}
}

func (s *Store) planMap() types.NamespacedName {
	return types.NamespacedName{Namespace: s.name.Namespace, Name: RecordName(s.name.Name)}
}

// RecordName returns the name of the ConfigMap that holds a plan.
func RecordName(plan string) string { return "stsmigrate-" + plan }

func (s *Store) journalMap() types.NamespacedName {
	return types.NamespacedName{Namespace: s.name.Namespace, Name: journalName(s.name.Name)}
}

func journalName(plan string) string { return RecordName(plan) + "-journal" }

// Version identifies the state of the journal that a Save replaces.
type Version struct {
	uid     types.UID
	version string
}

// ErrNoPlan reports that no plan of this name is stored.
type ErrNoPlan struct {
	Name types.NamespacedName
	// Context is the kubeconfig context of the cluster that was looked at, if it is known.
	Context string
	// Declared is the StatefulSetMigration of this name, of which no plan was made; nil if there is none.
	Declared *Declared
}

func (e ErrNoPlan) Error() string {
	at := ""
	if e.Context != "" {
		at = " of " + e.Context
	}
	if e.Declared != nil {
		return fmt.Sprintf("no plan is stored for StatefulSetMigration %s in namespace %s%s: %s; to follow it: kubectl describe statefulsetmigration %s -n %s",
			e.Name.Name, e.Name.Namespace, at, cmp.Or(e.Declared.Status.Message, "the orchestrator has said nothing about it yet"), e.Name.Name, e.Name.Namespace)
	}
	return fmt.Sprintf("there is no plan %s in namespace %s%s; %s", e.Name.Name, e.Name.Namespace, at, Kept)
}

// Kept says where plans are kept, to a user who has looked elsewhere.
const Kept = "plans are kept on the side of their destination, or of their orchestrator: name that with --context and -n, or with --home-context and --home-namespace; `stsmigrate get -A --context DESTINATION` lists the plans of a cluster"

// ReasonID implements reasons.Reasoned.
func (e ErrNoPlan) ReasonID() reasons.ID { return reasons.NoPlan }

// ErrNoJournal reports that the plan is stored and its journal is not.
type ErrNoJournal struct {
	Name types.NamespacedName
	// Begun reports that an orchestrator has begun the plan, so that the journal is lost.
	Begun bool
}

func (e ErrNoJournal) Error() string {
	return fmt.Sprintf("the journal of the plan, ConfigMap %s, does not exist, and nothing is written without it: restore it from a backup, or have it rebuilt from the marks on the objects (stsmigrate recover)", e.Name)
}

// ReasonID implements reasons.Reasoned.
func (e ErrNoJournal) ReasonID() reasons.ID { return reasons.NoJournal }

// ErrUnreadable reports that a plan or its journal exists, and that this program cannot read it.
type ErrUnreadable struct {
	Name types.NamespacedName // of the ConfigMap
	Why  error
}

func (e ErrUnreadable) Error() string { return fmt.Sprintf("ConfigMap %s: %v", e.Name, e.Why) }

// ReasonID implements reasons.Reasoned.
func (e ErrUnreadable) ReasonID() reasons.ID { return reasons.RecordUnreadable }

// Unwrap returns the reason.
func (e ErrUnreadable) Unwrap() error { return e.Why }

// UID reads the UID of the object that holds the plan, which never changes.
func (s *Store) UID(ctx context.Context) (types.UID, error) {
	var cm corev1.ConfigMap
	err := s.home.Get(ctx, s.planMap(), &cm)
	if apierrors.IsNotFound(err) {
		return "", ErrNoPlan{Name: s.name}
	}
	return cm.UID, err
}

// Plan reads the stored plan.
func (s *Store) Plan(ctx context.Context) (*plans.Plan, error) {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.planMap(), &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, ErrNoPlan{Name: s.name}
		}
		return nil, fmt.Errorf("reading plan %s: %w", s.name, err)
	}
	return planIn(&cm)
}

// planIn reads the plan of a ConfigMap. It requires the ConfigMap to be immutable, because every reader
// continues with what it has read, and to have the plan's name, by which the plan is found.
func planIn(cm *corev1.ConfigMap) (*plans.Plan, error) {
	p, err := plans.DecodePlan([]byte(cm.Data[planKey]))
	switch {
	case err != nil:
	case cm.Name != RecordName(p.Name):
		err = fmt.Errorf("it holds plan %s, which belongs into ConfigMap %s: delete the one that is not needed", p.Name, RecordName(p.Name))
	case cm.Immutable == nil || !*cm.Immutable:
		err = errors.New("it is not immutable, and a plan never changes: compare it with the file that was applied, and set its field immutable to true")
	}
	if err != nil {
		return nil, ErrUnreadable{client.ObjectKeyFromObject(cm), err}
	}
	return p, nil
}

// Journal reads the journal and the version that a Save must replace.
func (s *Store) Journal(ctx context.Context, p *plans.Plan) (*journal.Journal, Version, error) {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, Version{}, ErrNoJournal{Name: s.journalMap()}
		}
		return nil, Version{}, fmt.Errorf("reading the journal of plan %s: %w", s.name, err)
	}
	j, err := journal.Decode([]byte(cm.Data[journalKey]), p)
	if err != nil {
		return nil, Version{}, ErrUnreadable{s.journalMap(), err}
	}
	return j, Version{uid: cm.UID, version: cm.ResourceVersion}, nil
}

// Create stores a plan and its first journal, in which nothing has begun. It is safe to run again after
// the process died in the middle: an existing plan is accepted if it is this one. Another plan of the
// same name is deleted if it has ended, and otherwise an error.
func (s *Store) Create(ctx context.Context, p *plans.Plan, first *journal.Journal) error {
	if err := s.create(ctx, p, true); err != nil {
		return err
	}
	raw, err := json.Marshal(first)
	if err != nil {
		return err
	}
	if err := s.put(ctx, &corev1.ConfigMap{ObjectMeta: s.meta(s.journalMap()), Data: map[string]string{journalKey: string(raw)}}); err != nil {
		return err
	}
	_, _, err = s.Journal(ctx, p) // it is the journal of this plan, or an error
	return err
}

// CreatePlan stores a plan as Create does, for an orchestrator that creates the journal: clients of an
// orchestrator may not change or delete journals.
func (s *Store) CreatePlan(ctx context.Context, p *plans.Plan) error { return s.create(ctx, p, false) }

func (s *Store) create(ctx context.Context, p *plans.Plan, journals bool) error {
	if err := plans.RefuseStoredName(p.Name); err != nil { // whichever client made the plan
		return err
	}
	for n := new(Attempts); ; {
		if err := s.cleared(ctx, p, journals); err != nil {
			return err
		}
		if err := s.putPlan(ctx, p); err != nil {
			return err
		}
		have, err := s.Plan(ctx)
		if err != nil || have.ID == p.ID && have.Hash == p.Hash {
			return err
		}
		if why := s.Needed(ctx, have); why != nil {
			return fmt.Errorf("namespace %s has another plan named %s (%s), %w: finish it, or give this one another --name", s.name.Namespace, s.name.Name, have.ID, why)
		}
		if err := s.forget(ctx, have, journals); err != nil {
			return err
		}
		if !n.Again(ctx) {
			return cmp.Or(ctx.Err(), fmt.Errorf("ConfigMap %s of an ended plan is there again after every deletion: find out what puts it back, or give this plan another --name", s.planMap()))
		}
	}
}

// JournalOrNew reads the journal, or returns that of a plan that was never begun: a detached plan has no
// journal until an orchestrator observes its approval.
func (s *Store) JournalOrNew(ctx context.Context, p *plans.Plan) (*journal.Journal, error) {
	j, _, err := s.Journal(ctx, p)
	none := ErrNoJournal{}
	if !errors.As(err, &none) {
		return j, err
	}
	d, missing := ReadDeclared(ctx, s.home, s.name.Namespace, s.name.Name)
	from, _ := plans.RequestedIn(s.name.Name)
	if from == "" && (missing != nil || d == nil) {
		return nil, err
	}
	var record corev1.ConfigMap
	if missing := s.home.Get(ctx, s.planMap(), &record); missing != nil {
		return nil, err
	}
	if d.Begun(p, &record) { // of an object in another namespace, which the user may not read, the record tells
		none.Begun = true
		return nil, none
	}
	j = journal.New(p)
	j.Detached = true
	return j, nil
}

// putPlan creates the object that holds a plan, unless one of that name exists.
func (s *Store) putPlan(ctx context.Context, p *plans.Plan) error {
	raw, err := plans.Encode(p)
	if err != nil {
		return err
	}
	fixed := true
	return s.put(ctx, &corev1.ConfigMap{ObjectMeta: s.meta(s.planMap()), Immutable: &fixed, Data: map[string]string{planKey: string(raw)}})
}

// cleared checks, BEFORE a plan is stored, that no other object is in the place of its journal. The
// journal of an earlier plan that has ended or never began, and whose record is gone, is deleted in the
// version that was read. Without journals it is left to the orchestrator, which may delete it.
func (s *Store) cleared(ctx context.Context, p *plans.Plan, journals bool) error {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading ConfigMap %s: %w", s.journalMap(), err)
	}
	var j journal.Journal
	if err := weight.Unmarshal([]byte(cm.Data[journalKey]), &j); err != nil || j.Kind != plans.JournalKind || cm.Labels[plans.PlanLabel] != s.name.Name {
		return fmt.Errorf("ConfigMap %s is not the journal of a plan named %s: delete it if it is not needed, or give the plan another --name", s.journalMap(), s.name.Name)
	}
	have, err := s.Plan(ctx)
	switch {
	case j.Plan == p.ID, err == nil && have.ID != p.ID: // the stored plan decides what happens to it
		return nil
	case err != nil && !errors.As(err, new(ErrNoPlan)):
		return err
	case !spent(&j):
		return fmt.Errorf("ConfigMap %s is the journal of plan %s, which is still needed, and the plan itself is gone: restore ConfigMap %s from a backup, or give this one another --name", s.journalMap(), j.Plan, s.planMap())
	case !journals:
		return nil
	}
	return s.bury(ctx, &cm, j.Plan)
}

// spent reports whether the journal of a plan that no longer exists may go: the plan has ended and keeps no
// names, or was never begun.
func spent(j *journal.Journal) bool { return j.Untouched() || j.Over() }

// Delete deletes the journal of a plan that no longer exists, if it may go.
// The next plan of its name may be stored at any time, so nothing else is deleted than what was read.
func (s *Store) Delete(ctx context.Context) error {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	var j journal.Journal
	if weight.Unmarshal([]byte(cm.Data[journalKey]), &j) == nil && j.Kind == plans.JournalKind && spent(&j) {
		return s.bury(ctx, &cm, j.Plan)
	}
	return nil // the user may need it
}

// bury deletes the journal of a plan in the version that was read, and the timeline of that plan before
// it: without the journal nothing tells that the timeline may go.
func (s *Store) bury(ctx context.Context, journal *corev1.ConfigMap, plan string) error {
	var timeline corev1.ConfigMap
	err := s.home.Get(ctx, s.timelineMap(), &timeline)
	if err == nil && s.holdsTimeline(&timeline, plan) {
		err = s.remove(ctx, &timeline)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the timeline of plan %s: %w", s.name, err)
	}
	return s.remove(ctx, journal)
}

// Needed returns why the record of a plan must stay; nil means that the plan has ended and keeps no
// names. Without the journal this is unknown, so that a failed read is a reason too.
func (s *Store) Needed(ctx context.Context, p *plans.Plan) error {
	j, _, err := s.Journal(ctx, p)
	switch {
	case err != nil:
		return err
	case !j.Ended():
		return errors.New("which has not ended")
	case j.KeepNames:
		return errors.New("whose names are kept (names --remove takes them away)")
	}
	return nil
}

// Forget deletes the record of a plan that has ended, and its Lease. It returns an error while the plan
// is needed, or while another process works on it.
func (s *Store) Forget(ctx context.Context, p *plans.Plan, holder string, dead func(string) bool, now func() time.Time) error {
	if why := s.Needed(ctx, p); why != nil {
		return fmt.Errorf("the record of plan %s, %w, must stay", s.name, why)
	}
	lease, err := s.Acquire(ctx, holder, dead, now)
	if err != nil {
		return err
	}
	// Under the Lease no process can begin anything: an ended plan stays ended, and only the Keeper of
	// its names would act on them.
	return errors.Join(s.forget(ctx, p, true), lease.Release(ctx, true))
}

// forget deletes the record of an ended plan, in the version that was read. The plan goes first: if the
// process dies in between, a journal is left that records the end and to which plan it belongs. What is
// of another plan stays: the user may have stored the next plan of this name since p was read.
func (s *Store) forget(ctx context.Context, p *plans.Plan, journals bool) error {
	for _, name := range []types.NamespacedName{s.planMap(), s.timelineMap(), s.journalMap()} {
		if name != s.planMap() && !journals {
			return nil
		}
		var cm corev1.ConfigMap
		err := s.home.Get(ctx, name, &cm)
		if err == nil && s.isOf(&cm, p) {
			err = s.remove(ctx, &cm)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the record of plan %s: %w", s.name, err)
		}
	}
	return nil
}

// isOf reports whether an object is a part of the record of a plan.
func (s *Store) isOf(cm *corev1.ConfigMap, p *plans.Plan) bool {
	switch cm.Name {
	case s.planMap().Name:
		have, err := planIn(cm)
		return err == nil && have.ID == p.ID && have.Hash == p.Hash
	case s.timelineMap().Name:
		return s.holdsTimeline(cm, p.ID)
	}
	_, err := journal.Decode([]byte(cm.Data[journalKey]), p)
	return err == nil
}

// remove deletes an object in the version that was read. One that is kept by finalizers is an error: nothing else is
// deleted, or stored in its place, before it is gone.
func (s *Store) remove(ctx context.Context, cm *corev1.ConfigMap) error {
	if err := writes.IgnoreAnswers(writes.Delete(ctx, s.home, cm)); err != nil {
		return err
	}
	var left corev1.ConfigMap
	if err := s.home.Get(ctx, client.ObjectKeyFromObject(cm), &left); err != nil {
		return client.IgnoreNotFound(err)
	}
	if left.DeletionTimestamp != nil {
		return fmt.Errorf("ConfigMap %s/%s is being deleted, and its finalizers %s keep it: let what set them remove them, and run the command again", cm.Namespace, cm.Name, strings.Join(left.Finalizers, ", "))
	}
	return nil
}

func (s *Store) meta(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{
		plans.PlanLabel: s.name.Name, "app.kubernetes.io/managed-by": "stsmigrate",
	}}
}

// put creates an object, unless one of that name exists that only this program can have created: it has
// the same label, by which the plan is found, and the same keys. The caller checks by reading to which
// plan it belongs.
func (s *Store) put(ctx context.Context, cm *corev1.ConfigMap) error {
	err := s.home.Create(ctx, cm)
	if err == nil {
		return nil
	}
	var have corev1.ConfigMap
	if apierrors.IsAlreadyExists(err) {
		err = s.home.Get(ctx, client.ObjectKeyFromObject(cm), &have)
	}
	if err != nil {
		return fmt.Errorf("storing plan %s: %w", s.name, err)
	}
	for key := range cm.Data {
		if _, ok := have.Data[key]; !ok || have.Labels[plans.PlanLabel] != cm.Labels[plans.PlanLabel] {
			return fmt.Errorf("ConfigMap %s/%s is there without %s or without the label %s=%s, and is not of a plan named %s: delete it if it is not needed, or give the plan another --name",
				cm.Namespace, cm.Name, key, plans.PlanLabel, cm.Labels[plans.PlanLabel], s.name.Name)
		}
	}
	return nil
}

// Save replaces the version of the journal that was read, and returns the new version. A conflict means
// that another process has written it since. No other program writes the ConfigMap, so it is written as
// a whole.
func (s *Store) Save(ctx context.Context, j *journal.Journal, v Version) (Version, error) {
	short := *j
	short.Blocked, short.Waiting, short.Overdue, short.Observed.Refused = Brief(j.Blocked), Brief(j.Waiting), Brief(j.Overdue), Brief(j.Observed.Refused)
	raw, err := json.Marshal(short)
	if err != nil {
		return v, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: s.meta(s.journalMap()), Data: map[string]string{journalKey: string(raw)}}
	cm.UID, cm.ResourceVersion = v.uid, v.version
	if err := s.home.Update(ctx, cm); err != nil {
		return v, fmt.Errorf("writing the journal of plan %s: %w", s.name, err)
	}
	return Version{uid: cm.UID, version: cm.ResourceVersion}, nil
}

// Change reads the journal, applies change and saves the result. It tries again if another writer was
// faster. It is for requests of the user, such as a pause.
func (s *Store) Change(ctx context.Context, p *plans.Plan, change func(*journal.Journal) error) error {
	for n := new(Attempts); ; {
		j, v, err := s.Journal(ctx, p)
		if err != nil {
			return err
		}
		before := *j
		if err := change(j); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(&before, j) {
			return nil
		}
		if _, err := s.Save(ctx, j, v); !apierrors.IsConflict(err) || !n.Again(ctx) {
			return err
		}
	}
}
