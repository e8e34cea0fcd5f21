package storage

import (
	"github.com/stsmigrate/stsmigrate/internal/part"
	"github.com/stsmigrate/stsmigrate/plans"
)

// Part is what a move takes along of volumes and claims.
func Part() part.Part {
	return part.Part{Name: plans.Volumes, Rights: rights, Marks: marks, Writes: writesOf}
}

func rights(p *plans.Plan, side plans.Side) (out []part.Right) {
	claims := part.Right{Resource: "persistentvolumeclaims", Verbs: part.Watched()} // no claim may be deleted with its set
	if p.HasVolumes() {
		claims.Verbs, claims.Names = part.Changed(), ClaimNames(p, side)
		volumes := part.Right{Resource: "persistentvolumes", Verbs: append(part.Watched(), "patch"), ClusterWide: true}
		if !p.OneCluster() || len(p.Shared) > 0 {
			volumes.Verbs = append(volumes.Verbs, "create", "delete")
		}
		out = append(out, volumes,
			part.Right{Group: "storage.k8s.io", Resource: "volumeattachments", Verbs: part.Watched(), ClusterWide: true},
			part.Right{Group: "storage.k8s.io", Resource: "csidrivers", Verbs: []string{"get"}, ClusterWide: true})
		if !p.OneCluster() {
			out = append(out, part.Right{Group: "storage.k8s.io", Resource: "storageclasses", Verbs: []string{"get"}, ClusterWide: true})
		}
	}
	return append(out, claims)
}

// ClaimNames returns the names of the claims of a plan on a side.
func ClaimNames(p *plans.Plan, side plans.Side) []string {
	var out []string
	for _, c := range p.Claims {
		for o := range p.Ordinals().All() {
			out = append(out, p.ClaimName(side, c.Template, o))
		}
	}
	for _, s := range p.Shared {
		out = append(out, s.Claim)
	}
	return out
}

const (
	volumeKind = "PersistentVolume"
	claimKind  = "PersistentVolumeClaim"
)

func marks(p *plans.Plan, _ plans.Leg, side plans.Side) (out []part.Write) {
	if side == plans.Destination {
		return nil // there is no second object yet
	}
	for _, s := range p.Shared {
		out = append(out, part.Write{Verb: part.Patch, Side: side, Kind: volumeKind, Name: s.Volume, What: part.ToMark})
	}
	return out
}

func writesOf(p *plans.Plan, _ plans.Leg, s plans.Step) []part.Write {
	switch s.Op {
	case plans.Protect:
		return eachClaim(p, s.Ordinals, func(c claimName, _ plans.Mode) []part.Write {
			return []part.Write{ofClaim(p, plans.Source, part.Patch, c(plans.Source), "reclaim policy Retain, the old one is saved on it")}
		})
	case plans.Share:
		return shares(p)
	case plans.Release:
		return eachClaim(p, s.Ordinals, func(c claimName, _ plans.Mode) []part.Write {
			return []part.Write{part.On(p, s.From).Write(part.Delete, claimKind, c(s.From), "its volume is protected, and has its manifest")}
		})
	case plans.Reserve:
		return eachClaim(p, s.Ordinals, func(c claimName, by plans.Mode) (out []part.Write) {
			if !by.OneObject() && s.To() == plans.Destination {
				out = append(out, ofClaim(p, s.To(), part.Create, c(s.To()), "the same disk, while the wave is still up; no claim can have it yet"))
			}
			return append(out, ofClaim(p, s.To(), part.Patch, c(s.To()), "reserved for the claim of this side"))
		})
	case plans.Claim:
		return eachClaim(p, s.Ordinals, func(c claimName, _ plans.Mode) []part.Write {
			return []part.Write{part.On(p, s.To()).Write(part.Create, claimKind, c(s.To()), "bound to that volume")}
		})
	case plans.Settle:
		return eachClaim(p, s.Ordinals, func(c claimName, by plans.Mode) (out []part.Write) {
			if !by.OneObject() {
				out = append(out, ofClaim(p, s.From, part.Delete, c(s.From), "the object only: it is Retain, the disk stays"))
			}
			return append(out, part.On(p, s.To()).Write(part.Patch, claimKind, c(s.To()), "marks off"), ofClaim(p, s.To(), part.Patch, c(s.To()), "marks off, its own reclaim policy"))
		})
	case plans.Unshare:
		return unshares(p, s)
	default:
		return nil
	}
}

// claimName returns the name of a claim on a side.
type claimName func(plans.Side) string

// eachClaim calls one for each claim of a wave whose volume moves.
func eachClaim(p *plans.Plan, wave plans.Slice, one func(c claimName, by plans.Mode) []part.Write) (out []part.Write) {
	for o := range wave.All() {
		for _, c := range p.Moved() {
			out = append(out, one(func(side plans.Side) string { return p.ClaimName(side, c.Template, o) }, c.Mode)...)
		}
	}
	return out
}

// ofClaim returns the write of the volume behind a claim of a side.
func ofClaim(p *plans.Plan, side plans.Side, verb part.Verb, name, what string) part.Write {
	out := part.On(p, side).Write(verb, volumeKind, name, what)
	out.OfClaim = true
	return out
}

func shares(p *plans.Plan) (out []part.Write) {
	for _, s := range p.Shared {
		out = append(out,
			part.Write{Verb: part.Patch, Side: plans.Source, Kind: volumeKind, Name: s.Volume, What: "reclaim policy Retain, the old one is saved on it"},
			part.Write{Verb: part.Create, Side: plans.Destination, Kind: volumeKind, Name: p.SecondVolume(s), What: "a second object for the same disk"},
			part.On(p, plans.Destination).Write(part.Create, claimKind, s.Claim, "bound to that volume"))
	}
	return out
}

func unshares(p *plans.Plan, s plans.Step) (out []part.Write) {
	for _, v := range p.Shared {
		kept, gone := p.SecondVolume(v), v.Volume
		if s.To() == plans.Source {
			kept, gone = gone, kept
		}
		out = append(out,
			part.On(p, s.From).Write(part.Delete, claimKind, v.Claim, "its volume is protected"),
			part.Write{Verb: part.Delete, Side: s.From, Kind: volumeKind, Name: gone, What: "the object only: it is Retain, the disk stays"},
			part.On(p, s.To()).Write(part.Patch, claimKind, v.Claim, "marks off"),
			part.Write{Verb: part.Patch, Side: s.To(), Kind: volumeKind, Name: kept, What: "marks off, its own reclaim policy"})
	}
	return out
}
