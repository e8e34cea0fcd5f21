package writes

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IgnoreAnswers drops the errors that are an API server's answer to a write: conflict, already exists
// and not found. The next look at the object sees its true state.
func IgnoreAnswers(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
