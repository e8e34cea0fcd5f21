package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/writes"
)

const (
	planKey    = "plan.yaml"
	journalKey = "journal.json"
)

// Store keeps one plan and its journal in two ConfigMaps of the home
// namespace: the plan in an immutable one, the journal in one that every write
// replaces conditionally.
type Store struct {
	home client.Client
	name types.NamespacedName // of the plan
}

// NewStore returns the store of the plan of that name. The client must read
// live.
func NewStore(home client.Client, namespace, plan string) *Store {
	return &Store{home: home, name: types.NamespacedName{Namespace: namespace, Name: plan}}
}

func (s *Store) planMap() types.NamespacedName {
	return types.NamespacedName{Namespace: s.name.Namespace, Name: RecordName(s.name.Name)}
}

// RecordName is the name of the ConfigMap that holds a plan.
func RecordName(plan string) string { return "stsmigrate-" + plan }

func (s *Store) journalMap() types.NamespacedName {
	return types.NamespacedName{Namespace: s.name.Namespace, Name: RecordName(s.name.Name) + "-journal"}
}

// Version is the state of the journal that a Save replaces.
type Version struct {
	uid     types.UID
	version string
}

// ErrNoPlan says that no plan of this name is stored.
type ErrNoPlan struct{ Name types.NamespacedName }

func (e ErrNoPlan) Error() string {
	return fmt.Sprintf("there is no plan %s in namespace %s; `stsmigrate get -A` lists the plans of a cluster", e.Name.Name, e.Name.Namespace)
}

// ErrNoJournal says that the plan is stored and its journal is not.
type ErrNoJournal struct{ Name types.NamespacedName }

func (e ErrNoJournal) Error() string {
	return fmt.Sprintf("the journal of the plan, ConfigMap %s, does not exist, and nothing is written without it: restore it from a backup, or have it rebuilt from the marks on the objects (stsmigrate recover)", e.Name)
}

// ErrUnreadable says that a plan or its journal is there, and is not what this program understands.
type ErrUnreadable struct {
	Name types.NamespacedName // of the ConfigMap
	Why  error
}

func (e ErrUnreadable) Error() string { return fmt.Sprintf("ConfigMap %s: %v", e.Name, e.Why) }

// Unwrap gives the reason.
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

// planIn reads the plan of a ConfigMap. Whoever has read it goes on by what was read, so it must not change, and it is
// found by its name.
func planIn(cm *corev1.ConfigMap) (*plans.Plan, error) {
	p, err := plans.DecodePlan([]byte(cm.Data[planKey]))
	switch {
	case err != nil:
	case cm.Name != RecordName(p.Name):
		err = fmt.Errorf("it holds plan %s, which belongs into ConfigMap %s: delete the one of them that nobody needs", p.Name, RecordName(p.Name))
	case cm.Immutable == nil || !*cm.Immutable:
		err = errors.New("it is not immutable, and a plan never changes: compare it with the file that was applied, and set its field immutable to true")
	}
	if err != nil {
		return nil, ErrUnreadable{client.ObjectKeyFromObject(cm), err}
	}
	return p, nil
}

// Journal reads the journal and the version a Save has to replace.
func (s *Store) Journal(ctx context.Context, p *plans.Plan) (*plans.Journal, Version, error) {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, Version{}, ErrNoJournal{Name: s.journalMap()}
		}
		return nil, Version{}, fmt.Errorf("reading the journal of plan %s: %w", s.name, err)
	}
	j, err := plans.DecodeJournal([]byte(cm.Data[journalKey]), p)
	if err != nil {
		return nil, Version{}, ErrUnreadable{s.journalMap(), err}
	}
	return j, Version{uid: cm.UID, version: cm.ResourceVersion}, nil
}

// Create stores a plan and its first journal, of which nothing has been done. It is safe to run again after a
// death in the middle: a plan that is there already is accepted if it is this
// one. Another of the same name makes room if it has ended, and refuses otherwise.
func (s *Store) Create(ctx context.Context, p *plans.Plan, first *plans.Journal) error {
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
	_, _, err = s.Journal(ctx, p) // it is ours, or an error
	return err
}

// CreatePlan stores a plan as Create does, for an orchestrator that makes the journal: to change or delete one is not for
// others.
func (s *Store) CreatePlan(ctx context.Context, p *plans.Plan) error { return s.create(ctx, p, false) }

func (s *Store) create(ctx context.Context, p *plans.Plan, journals bool) error {
	if err := plans.RefuseName(p.Name); err != nil { // whoever made it
		return err
	}
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
	if err := s.forget(ctx, journals); err != nil {
		return err
	}
	return s.create(ctx, p, journals)
}

// JournalOrNew reads the journal, or gives that of a plan of which nothing has been done: a detached plan has none until an
// orchestrator sees that it is approved.
func (s *Store) JournalOrNew(ctx context.Context, p *plans.Plan) (*plans.Journal, error) {
	j, _, err := s.Journal(ctx, p)
	if !errors.As(err, new(ErrNoJournal)) {
		return j, err
	}
	d, missing := ReadDeclared(ctx, s.home, s.name.Namespace, s.name.Name)
	if missing != nil || d == nil {
		return nil, err
	}
	j = plans.NewJournal(p)
	j.Detached = true
	return j, nil
}

// putPlan creates the object that holds a plan, unless one of that name is there.
func (s *Store) putPlan(ctx context.Context, p *plans.Plan) error {
	raw, err := plans.Encode(p)
	if err != nil {
		return err
	}
	fixed := true
	return s.put(ctx, &corev1.ConfigMap{ObjectMeta: s.meta(s.planMap()), Immutable: &fixed, Data: map[string]string{planKey: string(raw)}})
}

// cleared makes sure, BEFORE a plan is stored, that nothing else is in the place of its journal. One of an
// earlier plan that has ended, whose record went without it, is deleted as it was read, or left for who may do that.
func (s *Store) cleared(ctx context.Context, p *plans.Plan, journals bool) error {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading ConfigMap %s: %w", s.journalMap(), err)
	}
	var j plans.Journal
	if err := json.Unmarshal([]byte(cm.Data[journalKey]), &j); err != nil || j.Kind != plans.JournalKind || cm.Labels[plans.PlanLabel] != s.name.Name {
		return fmt.Errorf("ConfigMap %s is not the journal of a plan named %s: delete it if nobody needs it, or give the plan another --name", s.journalMap(), s.name.Name)
	}
	have, err := s.Plan(ctx)
	switch {
	case j.Plan == p.ID, err == nil && have.ID != p.ID: // or the plan there says what is to become of it
		return nil
	case err != nil && !errors.As(err, new(ErrNoPlan)):
		return err
	case !j.Ended() || j.KeepNames:
		return fmt.Errorf("ConfigMap %s is the journal of plan %s, which is still needed, and the plan itself is gone: restore ConfigMap %s from a backup, or give this one another --name", s.journalMap(), j.Plan, s.planMap())
	case !journals:
		return nil
	}
	return s.remove(ctx, &cm)
}

// Delete deletes the journal of a plan that is gone, if that has ended.
func (s *Store) Delete(ctx context.Context) error {
	var cm corev1.ConfigMap
	if err := s.home.Get(ctx, s.journalMap(), &cm); err != nil {
		return client.IgnoreNotFound(err)
	}
	var j plans.Journal
	if json.Unmarshal([]byte(cm.Data[journalKey]), &j) == nil && j.Kind == plans.JournalKind && j.Ended() && !j.KeepNames {
		return client.IgnoreNotFound(s.remove(ctx, &cm))
	}
	return nil // a person may need it
}

// Needed gives the reason why the record of a plan must stay, or nil: it has ended, and
// nothing of it is kept. Without its journal nobody can tell.
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

// Forget deletes the record of a plan that has ended, and its Lease. It refuses while the plan is needed, or while another
// process works on it.
func (s *Store) Forget(ctx context.Context, p *plans.Plan, holder string, dead func(string) bool, now func() time.Time) error {
	if why := s.Needed(ctx, p); why != nil {
		return fmt.Errorf("the record of plan %s, %w, must stay", s.name, why)
	}
	lease, err := s.Acquire(ctx, holder, dead, now)
	if err != nil {
		return err
	}
	// With the Lease nobody can begin anything: an ended plan stays ended, and its names are looked at by their keeper.
	return errors.Join(s.forget(ctx, true), lease.Release(ctx, true))
}

// forget deletes the record of an ended plan, as it was read. The plan goes first: what a death leaves is
// a journal that says that it has ended, and whose it was.
func (s *Store) forget(ctx context.Context, journals bool) error {
	for _, name := range []types.NamespacedName{s.planMap(), s.journalMap()} {
		if name == s.journalMap() && !journals {
			return nil
		}
		var cm corev1.ConfigMap
		err := s.home.Get(ctx, name, &cm)
		if err == nil {
			err = s.remove(ctx, &cm)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the record of plan %s: %w", s.name, err)
		}
	}
	return nil
}

func (s *Store) remove(ctx context.Context, cm *corev1.ConfigMap) error {
	return writes.IgnoreAnswers(writes.Delete(ctx, s.home, cm))
}

func (s *Store) meta(name types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{
		plans.PlanLabel: s.name.Name, "app.kubernetes.io/managed-by": "stsmigrate",
	}}
}

// put creates an object unless one of that name is there that nobody but us has made: it has the same label, by which the
// plan is found, and the same keys. Which plan it is of, the caller finds out by reading.
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
			return fmt.Errorf("ConfigMap %s/%s is there without %s or without the label %s=%s, and is not of a plan named %s: delete it if nobody needs it, or give the plan another --name",
				cm.Namespace, cm.Name, key, plans.PlanLabel, cm.Labels[plans.PlanLabel], s.name.Name)
		}
	}
	return nil
}

// Save replaces the version of the journal that was read and gives the version
// that it now has. A conflict means that somebody else has written it since. The ConfigMap is ours alone,
// so that it is written whole.
func (s *Store) Save(ctx context.Context, j *plans.Journal, v Version) (Version, error) {
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

// Change reads the journal, lets change edit it and saves it, again if somebody
// else was faster. It is for the wishes of a person, such as a pause.
func (s *Store) Change(ctx context.Context, p *plans.Plan, change func(*plans.Journal) error) error {
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
