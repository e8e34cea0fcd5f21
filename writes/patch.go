package writes

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change makes an object next that was read as was. It is a conflict if the object has been changed
// since. next is then what the API server made of it.
func Change(ctx context.Context, on client.Client, was, next client.Object, opts ...client.PatchOption) error {
	return on.Patch(ctx, next, Patch{Was: was}, opts...)
}

// Patch is a JSON merge patch (RFC 7386) from an object as it was read to what it is to be. A list that
// is to be otherwise is replaced as a whole.
type Patch struct{ Was client.Object }

// Type implements client.Patch.
func (Patch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch. It has the UID and the resourceVersion of the object as it was read.
func (p Patch) Data(next client.Object) ([]byte, error) {
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
	return jsonpatch.CreateMergePatch(before, after)
}

// identified is an object in JSON, as the one of that UID and version.
func identified(o client.Object, uid types.UID, version string) ([]byte, error) {
	copied, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object of a cluster", o)
	}
	copied.SetUID(uid)
	copied.SetResourceVersion(version)
	return json.Marshal(copied)
}
