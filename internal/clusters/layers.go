package clusters

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stsmigrate/stsmigrate/plans"
)

// This file stacks the clients of a plan. Each layer is a client around the one below it. From the ground up:
//
//	                keepingClient       looks, the fence, budgets: what this look has read, then what this process keeps
//	listedClient          |             the checks before a start: one list in place of many reads
//	      |         rehearsalClient     a dry run of the server: writes are sent as dry runs
//	      +---------------+
//	          sliceClient               a StatefulSetSlice is read and written as a StatefulSet
//	      +-------+-------+
//	      |  lenientClient              what may not be read is not there
//	      |   manyClient                the checks of many sets: one list of each namespace and of the cluster
//	      +-------+-------+
//	  Connection         Gone           an API server, or a cluster that does not exist any more
//
// The order must hold:
//
//   - Connection is below everything that lists, so that no answer is longer than necessary, and few pages are in memory.
//     Gone stands in its place: nothing above it has to know.
//   - A sliceClient is right above. Everything else knows one kind of set: what is kept, compared, patched and tried is a
//     StatefulSet.
//   - A manyClient is below it, since it is about sets of both kinds, and above a Connection alone. It writes nothing. A
//     lenientClient is for what is known without a right: the set itself. The checks stand on the manyClient.
//   - A rehearsalClient is above that, since it joins patches of sets. It is below what keeps answers: an engine that
//     rehearses keeps what a dry run has answered like the answer to any other write.
//   - What answers without asking is on top, so that no layer finds an old answer below it. There is one such layer: either
//     the run of checks before a start, which judges one state, or the engine of a process. Within a keepingClient, the
//     look comes first: what it has read once does not change under it. A live read (package reads) goes down to the
//     ground, and its answer is kept on the way back.
//   - Writes go through all layers. A keepingClient keeps what they answered, and forgets what they may have changed.
//
// Nothing outside of this file makes a layer (TestLayersAreStackedInOnePlace).

// InTheWordsOf returns the clients of a plan. On a side whose set is a StatefulSetSlice, reads and
// writes of StatefulSets become reads and writes of StatefulSetSlices. The rest of the program knows one
// kind of set.
func (c Clusters) InTheWordsOf(refs map[plans.Side]plans.Ref) Clusters {
	out := Clusters{}
	for side, on := range c {
		out[side] = InWordsOf(on, refs[side])
	}
	return out
}

// InWordsOf returns a client that presents sets of this set's kind as StatefulSets.
func InWordsOf(on client.Client, set plans.Ref) client.Client {
	if set.IsSlice() {
		return sliceClient{on}
	}
	return on
}

// Gone returns the clients of a plan whose source cluster does not exist any more, as the user has
// vouched: reads of the source find nothing, and writes to it fail. Finalizing with these clients does
// the destination's half.
func (c Clusters) Gone() Clusters {
	return Clusters{plans.Source: Gone{c[plans.Destination]}, plans.Destination: c[plans.Destination]}
}

// Client returns a client that sends every write as a dry run (`dryRun=All`), so that nothing is stored. A later read of
// the object has what the API server has answered, as if a controller had seen it at once: the write that follows it can
// be tried too. Nothing is ever deleted, not even as a dry run.
func (r *Rehearsal) Client(side plans.Side, c client.Client) client.Client {
	return rehearsalClient{c, r, side}
}

// Clients returns such clients for both sides. Within one cluster the sides share what is answered.
func (r *Rehearsal) Clients(p *plans.Plan, on Clusters) Clusters {
	out := Clusters{}
	for side, c := range on {
		out[side] = r.Client(side, c)
		if p.OneCluster() {
			out[side] = r.Client(plans.Destination, c)
		}
	}
	return out
}

// Listed returns clients for one run of the checks before a start, which are about every claim and volume of a plan.
// They read the claims of the plan's namespaces, and the volumes bound to them, with one list each instead of one by
// one. They read any other object, and any list of a whole namespace, once. So all checks of the run judge the same
// state. Where the user may not list, claims and volumes are read one by one.
func (c Clusters) Listed(p *plans.Plan) Clusters {
	out := Clusters{}
	for side, on := range c {
		if _, gone := on.(Gone); gone {
			out[side] = on
			continue
		}
		listed := &listedClient{Client: on, namespaces: map[string]bool{p.On(side).Namespace: true}, answers: map[question]*reply{}}
		if p.OneCluster() {
			listed.namespaces[p.On(side.Other()).Namespace] = true
		}
		out[side] = listed
	}
	return out
}

// NewMany returns what reads for the checks of many sets of one cluster.
func NewMany(on client.Client) *Many {
	return &Many{on: on, wide: &lists{of: map[question]*stock{}}, unknown: map[schema.GroupVersionKind]error{}}
}

// Namespace returns the client for the sets of one namespace. What it has listed there is kept as long as it is.
func (m *Many) Namespace(namespace string) client.Client {
	return manyClient{Client: m.on, many: m, namespace: namespace, near: &lists{of: map[question]*stock{}}}
}

// Lenient returns a client for which what may not be looked at is not there.
func Lenient(on client.Client) client.Client { return lenientClient{on} }

// Nowhere returns the clients of a set that has no destination: there, nothing is found, and nothing can be written.
func Nowhere(source client.Client) Clusters {
	return Clusters{plans.Source: source, plans.Destination: Gone{source}}
}

// Clients returns clients that read through it, and forget what they write.
func (r *Recent) Clients(p *plans.Plan, on Clusters) Clusters {
	out := Clusters{}
	for side, c := range on {
		if _, gone := c.(Gone); gone {
			out[side] = c
			continue
		}
		out[side] = keepingClient{Client: c, recent: r, cluster: clusterOf(p, side)}
	}
	return out
}

// Clients returns clients that read through the cache of one look. Writes bypass it.
func (g *ReadCache) Clients(p *plans.Plan, on Clusters) Clusters {
	out := Clusters{}
	for side, c := range on {
		keeping, ok := c.(keepingClient)
		if !ok {
			keeping = keepingClient{Client: c, recent: NewRecent(), cluster: clusterOf(p, side)} // which keeps nothing
		}
		keeping.look = g
		out[side] = keeping
	}
	return out
}

// keepingClient answers reads with what is kept: by one look, and by the process.
type keepingClient struct {
	client.Client

	recent  *Recent
	look    *ReadCache // nil for requests of no look
	cluster plans.Side
	terms   terms
}

// Ground returns what a client of the checks before a start stands on: a Connection, if it is of a cluster.
func Ground(c client.Client) client.Client {
	for {
		switch layer := c.(type) {
		case *listedClient:
			c = layer.Client
		case sliceClient:
			c = layer.Client
		default:
			return c
		}
	}
}
