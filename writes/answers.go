package writes

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IgnoreAnswers drops the errors of a write that are answers: the next look at the object sees what is true.
func IgnoreAnswers(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
