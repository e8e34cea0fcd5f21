package writes

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change changes an object from was, the object as it was read, to next. It returns a conflict if the
// object has changed since. Afterwards next is the object as the API server returned it.
func Change(ctx context.Context, on client.Client, was, next client.Object, opts ...client.PatchOption) error {
	return on.Patch(ctx, next, Patch{Was: was}, opts...)
}

// Patch is a JSON merge patch (RFC 7386) from an object as it was read to its next state. A list that
// differs is replaced as a whole.
type Patch struct {
	Was client.Object
	// Next, if set, is the next state. The object of the request then only receives the answer: a decoder may leave
	// what an object had and the answer does not have.
	Next client.Object
	// Before, if set, is an earlier patch whose effect Was has and the API server's object has not, since it was a dry
	// run. Both are sent as one.
	Before *Patch
}

// Type implements client.Patch.
func (Patch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch. The patch contains the UID and the resourceVersion of the object as
// it was read.
func (p Patch) Data(next client.Object) ([]byte, error) {
	if p.Next != nil {
		next = p.Next
	}
	if p.Was.GetResourceVersion() == "" {
		return nil, fmt.Errorf("%s/%s has no resourceVersion to make its change conditional on", p.Was.GetNamespace(), p.Was.GetName())
	}
	before, err := identified(p.Was, "", "")
	if err != nil {
		return nil, err
	}
	after, err := identified(next, p.Was.GetUID(), p.Was.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	own, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil || p.Before == nil {
		return own, err
	}
	earlier, err := p.Before.Data(nil)
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergeMergePatches(earlier, own)
}

// identified returns an object in JSON with the given UID and version.
func identified(o client.Object, uid types.UID, version string) ([]byte, error) {
	copied, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object of a cluster", o)
	}
	copied.SetUID(uid)
	copied.SetResourceVersion(version)
	return json.Marshal(copied)
}
