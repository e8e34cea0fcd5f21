package answers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNoKind is the answer 404 to a request for an object, without a word of the object: the API server does not serve its
// kind (yet), or something in front of it has answered. It does not say that the object is gone, and is no NotFound.
type ErrNoKind struct{ Host, Path string }

func (e ErrNoKind) Error() string {
	return fmt.Sprintf("%s does not serve %s (HTTP 404, and nothing about an object): the kind is not there (yet), or a proxy has answered", e.Host, e.Path)
}

// Unwrap makes it what the client itself returns for a kind that it does not find.
func (e ErrNoKind) Unwrap() error {
	return &meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: e.Path}}
}
