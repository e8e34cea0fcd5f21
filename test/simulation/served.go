package simulation

import (
	"context"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// served is the client of a process of which several goroutines write and read: its own, that of its Lease, and those
// of its checks. One request is served at a time, and none while a controller acts. It also answers what a user may do.
type served struct {
	*conn
	lock *sync.Mutex
	died func() // called after a request at which the process has died
}

func (c served) one(request func() error) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	err := request()
	if c.r.dead {
		c.died()
	}
	return err
}

// Get does not insist on a right: what the checks may not read is a warning of theirs.
func (c served) Get(ctx context.Context, k client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.one(func() error {
		if err := c.refused("get", key{kindOf(into), k.Namespace, k.Name}); err != nil {
			return err
		}
		return c.conn.Get(ctx, k, into, opts...)
	})
}

// List does not insist on a right either.
func (c served) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return c.one(func() error {
		var o client.ListOptions
		o.ApplyOptions(opts)
		if err := c.refused("list", key{strings.TrimSuffix(kindOf(into), "List"), o.Namespace, ""}); err != nil {
			return err
		}
		return c.conn.List(ctx, into, opts...)
	})
}

func (c served) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	return c.one(func() error {
		switch o := o.(type) {
		case *authenticationv1.SelfSubjectReview:
			o.Status.UserInfo.Username = "system:serviceaccount:stsmigrate:orchestrator"
			return c.r.unanswered(c.store)
		case *authorizationv1.SelfSubjectRulesReview:
			return c.rules(o)
		case *authorizationv1.SelfSubjectAccessReview:
			about := o.Spec.ResourceAttributes
			resource := about.Resource
			if about.Subresource != "" {
				resource += "/" + about.Subresource
			}
			o.Status.Allowed = c.allowed(about.Verb, resource, about.Namespace, about.Name)
			return c.r.unanswered(c.store)
		case *coordinationv1.Lease: // it is no object of the plan, and its writes are no steps
			return c.politely("create", o, func() error { return c.store.Create(ctx, o, opts...) })
		}
		return c.conn.Create(ctx, o, opts...)
	})
}

func (c served) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	return c.one(func() error {
		if _, isLease := o.(*coordinationv1.Lease); isLease {
			return c.politely("update", o, func() error { return c.store.Update(ctx, o, opts...) })
		}
		return c.conn.Update(ctx, o, opts...)
	})
}

func (c served) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.one(func() error {
		var options client.PatchOptions
		options.ApplyOptions(opts)
		if len(options.DryRun) > 0 {
			return c.politely("patch", o, func() error { return c.trial().Patch(c.by(ctx), o, patch, opts...) })
		}
		return c.conn.Patch(ctx, o, patch, opts...)
	})
}

func (c served) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	return c.one(func() error {
		var options client.DeleteOptions
		options.ApplyOptions(opts)
		if len(options.DryRun) > 0 {
			return c.politely("delete", o, func() error { return c.trial().Delete(c.by(ctx), o, opts...) })
		}
		if _, isLease := o.(*coordinationv1.Lease); isLease {
			return c.politely("delete", o, func() error { return c.store.Delete(ctx, o, opts...) })
		}
		return c.conn.Delete(ctx, o, opts...)
	})
}

// politely sends a write of the Lease, or a dry run.
func (c *conn) politely(verb string, o client.Object, send func() error) error {
	if err := c.may(verb, keyOf(o)); err != nil {
		return err
	}
	if err := c.r.unanswered(c.store); err != nil {
		return err
	}
	return send()
}

// rules answers with the printed Roles of a namespace.
func (c served) rules(o *authorizationv1.SelfSubjectRulesReview) error {
	have := c.r.w.rights[c.name]
	for _, in := range []string{"", o.Spec.Namespace} {
		for _, rule := range have[in] {
			o.Status.ResourceRules = append(o.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
	}
	return c.r.unanswered(c.store)
}
