// Package pictures draws the pictures of docs/concepts.md. Its test compares them with the files, and writes them with
// -update.
package pictures

import (
	"fmt"
	"strconv"

	"github.com/stsmigrate/stsmigrate/plans"
	"github.com/stsmigrate/stsmigrate/test/pictures/svg"
)

// All returns every picture, by the name of its file.
func All() map[string]string {
	return map[string]string{
		"slices.svg":  drawSlices(),
		"budget.svg":  drawBudget(),
		"wave.svg":    drawWave(),
		"place.svg":   drawPlace(),
		"volumes.svg": drawVolumes(),
		"names.svg":   drawNames(),
		"journal.svg": drawJournal(),
		"death.svg":   drawDeath(),
	}
}

// drawSlices shows where five ordinals are, from the beginning of a move to its end.
func drawSlices() string {
	const size, step, left, right = 34, 38, 230, 470
	moments := []struct {
		when        string
		kept, taken int // ordinals below kept are on the source, those from taken on are on the destination
		source, to  string
	}{
		{"before", 5, 5, "start 0, replicas 5", "start 5, replicas 0"},
		{"ordinal 4 is in flight", 4, 5, "start 0, replicas 4", "start 5, replicas 0"},
		{"ordinal 4 has arrived", 4, 4, "start 0, replicas 4", "start 4, replicas 1"},
		{"half way", 2, 2, "start 0, replicas 2", "start 2, replicas 3"},
		{"after", 0, 0, "start 0, replicas 0", "start 0, replicas 5"},
	}
	p := svg.New(690, 70+len(moments)*62, "The slices of two sets during a move of five ordinals")
	p.Head(left, 26, "source")
	p.Head(right, 26, "destination")
	for n, m := range moments {
		y := 44 + n*62
		p.Text(12, y+22, m.when)
		for o := range 5 {
			x := left + o*step
			switch name := strconv.Itoa(o); {
			case o < m.kept:
				p.Box(x, y, size, size, svg.Source, name)
			case o < m.taken:
				p.Box(x, y, size, size, svg.Flight, name)
			default:
				p.Box(x, y, size, size, svg.Plain)
			}
			if o >= m.taken {
				p.Box(right+o*step, y, size, size, svg.Destination, strconv.Itoa(o))
			} else {
				p.Box(right+o*step, y, size, size, svg.Plain)
			}
		}
		p.Small(left, y+size+14, m.source)
		p.Small(right, y+size+14, m.to)
	}
	return p.String()
}

// drawBudget shows that what both budgets allow and what is in flight is never more than d.
func drawBudget() string {
	const unit, left = 90, 250
	const d, w = 3, 1
	moments := []struct {
		when                    string
		source, flight, reaches int
	}{
		{"between two waves", 2, 0, 1},
		{"Tighten: before a wave leaves", 1, 0, 1},
		{"the wave is in flight", 1, w, 1},
		{"Relax: it has arrived", 1, 0, 2},
	}
	p := svg.New(620, 60+len(moments)*52, "The budget d = 3 over both sides, with waves of one ordinal")
	p.Head(left, 24, fmt.Sprintf("d = %d, w = %d: what may be down", d, w))
	for n, m := range moments {
		x, y := left, 40+n*52
		p.Text(12, y+22, m.when)
		for _, part := range []struct {
			units int
			class svg.Class
			words string
		}{
			{m.source, svg.Source, "source"}, {m.flight, svg.Flight, "in flight"}, {m.reaches, svg.Destination, "destination"},
		} {
			for range part.units {
				p.Box(x, y, unit-4, 36, part.class, part.words)
				x += unit
			}
		}
		for ; x < left+d*unit; x += unit {
			p.Box(x, y, unit-4, 36, svg.Plain, "for the wave")
		}
	}
	p.Line(left+d*unit, 34, left+d*unit, 40+len(moments)*52-10)
	p.Small(left+d*unit+6, 60, "d")
	return p.String()
}

// drawWave shows the steps of a wave, and where its pod is meanwhile.
func drawWave() string {
	const width, top = 78, 60
	steps := []plans.Op{
		plans.Tighten, plans.Quiesce, plans.Shrink, plans.Vacate, plans.Release, plans.Reserve, plans.Claim, plans.Grow, plans.Verify, plans.Relax,
	}
	touched := map[plans.Op][]string{
		plans.Tighten: {"both", "budgets"}, plans.Quiesce: {"gates"}, plans.Shrink: {"source", "replicas - 1"}, plans.Vacate: {"no write,", "a proof"},
		plans.Release: {"source's", "claim"}, plans.Reserve: {"volume"}, plans.Claim: {"destination's", "claim"}, plans.Grow: {"destination", "replicas + 1"},
		plans.Verify: {"gates"}, plans.Relax: {"both", "budgets"},
	}
	p := svg.New(24+len(steps)*width, 230, "The steps of a wave, and where its pod is")
	p.Head(12, 26, "One wave")
	p.Small(12, 44, "A step begins when the one before it is done, and is done when a read of both clusters shows it.")
	for n, s := range steps {
		x := 12 + n*width
		p.Box(x, top, width-6, 30, svg.Quiet, string(s))
		for k, words := range touched[s] {
			p.Small(x+2, top+48+k*14, words)
		}
	}
	p.Box(12, top+90, 3*width-6, 26, svg.Source, "the pod runs on the source")
	p.Box(12+3*width, top+90, 5*width-6, 26, svg.Flight, "the pod is on neither side: in flight")
	p.Box(12+8*width, top+90, 2*width-6, 26, svg.Destination, "on the destination")
	p.Small(12, top+140, "Between two clusters the destination's volume and claim (Reserve, Claim) are made before Shrink, while the")
	p.Small(12, top+154, "ordinal is still up. An abort does the same with the sides swapped.")
	return p.String()
}

// drawPlace shows who has the place of an ordinal while it leaves, on both sides, and what each change of hands waits for.
func drawPlace() string {
	const asked, proven, ended, comes, end = 170, 330, 500, 610, 780
	const above, source, neither, destination, anchor = 66, 84, 126, 168, 204
	p := svg.New(end+12, 296, "The place of an ordinal is taken before it leaves, and is free when it comes")
	p.Head(12, 26, "The exchange")
	for _, m := range []struct {
		x    int
		when string
	}{{asked, "before"}, {proven, "Shrink"}, {ended, "Vacate is done"}, {comes, "Grow"}} {
		p.Line(m.x, above-8, m.x, anchor+30)
		p.Small(m.x+3, above, m.when)
	}
	p.Text(12, source+20, "source, node-1")
	p.Text(12, neither+20, "on neither side")
	p.Text(12, destination+20, "destination, node-7")
	p.Box(asked-30, source, proven-asked+30, 32, svg.Source, "web-3 serves")
	p.Box(proven, source, ended-proven, 32, svg.Source, "web-3 ends")
	p.Box(ended, neither, comes-ended, 32, svg.Flight, "claim, volume")
	p.Box(asked, destination, proven-asked, 32, svg.Plain, "placeholder, unproven")
	p.Box(proven, destination, ended-proven, 32, svg.Kept, "placeholder, warm")
	p.Box(proven, anchor, comes-proven+24, 22, svg.Kept, "anchor: draws web-3 to this node")
	p.Box(comes, destination, end-comes, 32, svg.Destination, "web-3 starts, and serves")
	p.Small(asked+3, anchor+44, "made while the wave before")
	p.Small(asked+3, anchor+58, "comes up")
	p.Small(proven+3, anchor+44, "only when the scheduler and")
	p.Small(proven+3, anchor+58, "the kubelet have said yes")
	p.Small(ended+3, anchor+44, "the old pod is gone, and the")
	p.Small(ended+3, anchor+58, "placeholder is deleted")
	p.Small(12, anchor+84, "Until Shrink nothing is down, however long the place takes. An abort does the same with the sides swapped.")
	return p.String()
}

// drawVolumes shows which objects there are of one disk, before and after, by mode.
func drawVolumes() string {
	p := svg.New(780, 410, "The objects of a disk before and after a move, by mode")
	for n, mode := range []struct {
		name, what            string
		volume, disk          [2]string // before and after
		volumeKept, diskEmpty bool
	}{
		{"rebind", "another namespace of the same cluster", [2]string{"volume pvc-1", "volume pvc-1"}, [2]string{"disk 1", "disk 1"}, true, false},
		{"reimport", "another cluster on the same storage", [2]string{"volume pvc-1", "volume pvc-1 (a second object)"}, [2]string{"disk 1", "disk 1"}, false, false},
		{"empty", "no volume moves: the application replicates", [2]string{"volume pvc-1", "volume pvc-9"}, [2]string{"disk 1", "disk 9, empty"}, false, true},
	} {
		y := 16 + n*126
		p.Head(12, y+14, mode.name)
		p.Small(12, y+32, mode.what)
		for k, side := range []struct {
			claim string
			class svg.Class
		}{{"claim data-web-4", svg.Source}, {"claim data-web-4", svg.Destination}} {
			x := 300 + k*240
			class := side.class
			if k == 1 && mode.volumeKept {
				class = svg.Kept
			}
			p.Box(x, y, 200, 26, side.class, side.claim)
			p.Arrow(x+100, y+26, x+100, y+42)
			p.Box(x, y+42, 200, 26, pick(k == 0 && mode.volumeKept, svg.Kept, class), mode.volume[k])
			p.Arrow(x+100, y+68, x+100, y+84)
			p.Box(x, y+84, 200, 26, pick(k == 1 && mode.diskEmpty, svg.Destination, svg.Kept), mode.disk[k])
		}
		p.Arrow(504, y+13, 536, y+13)
	}
	p.Small(12, 402, "Yellow: the same object, or the same disk, before and after.")
	return p.String()
}

func pick(first bool, a, b svg.Class) svg.Class {
	if first {
		return a
	}
	return b
}

// drawNames shows that a pod is found under both of its names on both sides.
func drawNames() string {
	p := svg.New(760, 240, "A pod is found under its old and its new name on both sides")
	p.Head(12, 26, "source: namespace shop")
	p.Head(470, 26, "destination: namespace mall")
	p.Box(12, 44, 230, 30, svg.Source, "web-0.web.shop.svc")
	p.Box(12, 84, 230, 30, svg.Source, "web-4.web.shop.svc")
	p.Box(12, 134, 230, 30, svg.Quiet, "web-0.web.mall.svc")
	p.Box(12, 174, 230, 30, svg.Quiet, "web-4.web.mall.svc")
	p.Box(310, 62, 110, 34, svg.Source, "pod web-0")
	p.Box(310, 152, 110, 34, svg.Destination, "pod web-4")
	p.Box(490, 44, 230, 30, svg.Quiet, "web-0.web.shop.svc")
	p.Box(490, 84, 230, 30, svg.Quiet, "web-4.web.shop.svc")
	p.Box(490, 134, 230, 30, svg.Destination, "web-0.web.mall.svc")
	p.Box(490, 174, 230, 30, svg.Destination, "web-4.web.mall.svc")
	for _, y := range []int{59, 149} {
		p.Arrow(242, y, 308, 79)
		p.Arrow(490, y, 422, 79)
	}
	for _, y := range []int{99, 189} {
		p.Arrow(242, y, 308, 169)
		p.Arrow(490, y, 422, 169)
	}
	p.Small(12, 228, "Every name leads to the pod, wherever it is: the plan adds EndpointSlices beside those of the control plane.")
	return p.String()
}

// drawJournal shows what is written where for one step.
func drawJournal() string {
	p := svg.New(760, 250, "The plan, its journal and the marks on the objects")
	p.Box(12, 20, 200, 60, svg.Kept, "plan", "never changes; has a hash")
	p.Box(12, 110, 200, 76, svg.Quiet, "journal", "epoch 3", "steps begun and done")
	p.Small(12, 206, "two ConfigMaps, in the destination")
	p.Box(290, 80, 150, 76, svg.Plain, "process", "of epoch 3")
	p.Box(540, 20, 200, 56, svg.Source, "objects of the source", "mark: plan, epoch, step")
	p.Box(540, 150, 200, 56, svg.Destination, "objects of the destination", "mark: plan, epoch, step")
	p.Arrow(212, 50, 290, 100)
	p.Small(222, 56, "reads")
	p.Arrow(290, 125, 214, 145)
	p.Small(222, 166, "1. intent")
	p.Small(222, 180, "4. done")
	p.Arrow(440, 104, 538, 52)
	p.Arrow(440, 132, 538, 172)
	p.Small(450, 68, "2. write")
	p.Small(450, 172, "2. write")
	p.Small(456, 122, "3. look")
	p.Small(12, 238, "A process of an older epoch can no longer write: the objects that it would change carry a newer mark.")
	return p.String()
}

// drawDeath shows the three places in a step at which a process can die, and how the next one continues.
func drawDeath() string {
	const width = 170
	parts := []string{"look: the write is due", "journal: begun", "write to the object", "look: done", "journal: done"}
	p := svg.New(40+len(parts)*width, 210, "Where a process can die within a step, and what the next one sees")
	for n, words := range parts {
		x := 16 + n*width
		p.Box(x, 24, width-40, 44, svg.Quiet, words)
		if n+1 < len(parts) {
			p.Arrow(x+width-40, 46, x+width-2, 46)
		}
	}
	for n, words := range [][]string{
		{"dies here:", "nothing was written;", "the next process", "looks, and begins"},
		{"dies here:", "the journal says begun,", "the object says not yet;", "the write is sent now"},
		{"dies here:", "the object says done;", "nothing is sent again"},
		{"dies here:", "the same"},
	} {
		x := 16 + (n+1)*width - 20
		p.Dashed(x, 84, x, 54)
		for k, line := range words {
			p.Small(x-58, 100+k*15, line)
		}
	}
	p.Small(16, 194, "The next process raises the epoch first, so that a write of the dead one that arrives late is refused.")
	return p.String()
}
