package clusters

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/internal/writes"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Trial is a write that was sent as a dry run, and how the API server has answered.
type Trial struct {
	ObjectKey
	// Verb is create, patch or update.
	Verb string
	// Refused is the answer if the API server would not accept the write.
	Refused error
}

// Rehearsal records writes that are sent as dry runs.
type Rehearsal struct {
	Trials  []Trial
	kept    map[ObjectKey]client.Object
	patches map[ObjectKey]*writes.Patch
}

// NewRehearsal returns a Rehearsal without trials. It is not safe for concurrent use.
func NewRehearsal() *Rehearsal {
	return &Rehearsal{kept: map[ObjectKey]client.Object{}, patches: map[ObjectKey]*writes.Patch{}}
}

type rehearsalClient struct {
	client.Client
	rehearsal *Rehearsal
	side      plans.Side
}

func (c rehearsalClient) keyOf(o client.Object) ObjectKey {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if gvk, err := c.GroupVersionKindFor(o); err == nil {
		kind = gvk.Kind
	}
	return ObjectKey{Cluster: c.side, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Get implements client.Reader.
func (c rehearsalClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	probe, _ := into.DeepCopyObject().(client.Object)
	probe.SetNamespace(key.Namespace)
	probe.SetName(key.Name)
	kept := c.rehearsal.kept[c.keyOf(probe)]
	if kept == nil {
		return c.Client.Get(ctx, key, into, opts...)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kept)
	if err != nil {
		return err
	}
	gvk := into.GetObjectKind().GroupVersionKind()
	if u, ok := into.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(runtime.DeepCopyJSON(fields))
	} else {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
	}
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return err
}

// keep records a trial. generation is the one that the controllers have seen.
func (c rehearsalClient) keep(verb string, o client.Object, generation int64, err error) error {
	c.rehearsal.Trials = append(c.rehearsal.Trials, Trial{ObjectKey: c.keyOf(o), Verb: verb, Refused: err})
	if err != nil {
		return err
	}
	kept, _ := o.DeepCopyObject().(client.Object)
	kept.SetGeneration(generation)
	c.rehearsal.kept[c.keyOf(o)] = kept
	return nil
}

// Create implements client.Writer. What a look itself sends as a dry run is none of the writes.
func (c rehearsalClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if asked := (&client.CreateOptions{}).ApplyOptions(opts); len(asked.DryRun) > 0 {
		return c.Client.Create(ctx, o, opts...)
	}
	return c.keep("create", o, 0, c.Client.Create(ctx, o, append(opts, client.DryRunAll)...))
}

// Update implements client.Writer.
func (c rehearsalClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	generation := o.GetGeneration()
	return c.keep("update", o, generation, c.Client.Update(ctx, o, append(opts, client.DryRunAll)...))
}

// Patch implements client.Writer. A later patch of an object is sent with the earlier ones: the API server has stored
// none of them, and would answer without their effect.
func (c rehearsalClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	generation, key := o.GetGeneration(), c.keyOf(o)
	change, ours := patch.(writes.Patch)
	if ours {
		if change.Next == nil {
			change.Next, _ = o.DeepCopyObject().(client.Object)
		}
		change.Before = c.rehearsal.patches[key]
		patch = change
	}
	err := c.keep("patch", o, generation, c.Client.Patch(ctx, o, patch, append(opts, client.DryRunAll)...))
	if err == nil && ours {
		c.rehearsal.patches[key] = &change
	}
	return err
}

var errNotRehearsed = errors.New("it is not sent as a dry run")

// Delete implements client.Writer.
func (c rehearsalClient) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	return fmt.Errorf("deleting %s %s: %w", c.keyOf(o).Kind, o.GetName(), errNotRehearsed)
}

// DeleteAllOf implements client.Writer.
func (c rehearsalClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errNotRehearsed
}

// Apply implements client.Writer.
func (c rehearsalClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errNotRehearsed
}
