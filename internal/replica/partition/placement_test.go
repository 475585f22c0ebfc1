package partition

import (
	"testing"

	"samsa/internal/base/model"
)

// Every row of J-105, and what its neighbours prove: J-106 (found is per topic id, the caller's duty), J-107 (an
// existing log is used first), J-150 (P11), P2b and P9 (never an empty log while the full one may be on a dead disk).
func TestPlaceEveryRow(t *testing.T) {
	var none model.DirectoryID
	x, y, z := model.DirectoryID{1}, model.DirectoryID{2}, model.DirectoryID{3}
	cases := []struct {
		name string
		in   Placement
		want Decision
	}{
		{"P1 unassigned, log found", Placement{Assigned: model.DirUnassigned, Found: y}, Decision{"P1", Use, none, true, none, false}},
		{"P2 unassigned, nowhere", Placement{Assigned: model.DirUnassigned, AnyDead: true}, Decision{"P2", Create, none, true, none, false}},
		{"P2 hint", Placement{Assigned: model.DirUnassigned, Hint: z}, Decision{"P2", Create, z, true, none, false}},
		{"P2b may be on the dead disk", Placement{Assigned: model.DirUnassigned, AnyDead: true, Initial: true, InISR: true}, Decision{"P2b", Offline, none, true, model.DirLost, false}},
		{"P2 initial, not in ISR", Placement{Assigned: model.DirUnassigned, AnyDead: true, Initial: true}, Decision{"P2", Create, none, true, none, false}},
		{"P3 migrating, found", Placement{Assigned: model.DirMigrating, Found: y, AnyDead: true}, Decision{"P3", Use, none, true, none, false}},
		{"P4 migrating, nowhere", Placement{Assigned: model.DirMigrating}, Decision{"P4", Create, none, true, none, false}},
		{"P5 migrating, dead disk", Placement{Assigned: model.DirMigrating, AnyDead: true}, Decision{"P5", Offline, none, true, model.DirLost, false}},
		{"P6 in place", Placement{Assigned: x, AssignedOnline: true, Found: x, AnyDead: true}, Decision{"P6", Use, none, false, none, false}},
		{"P7 a move resumes", Placement{Assigned: x, AssignedOnline: true, Found: x, Future: z}, Decision{"P7", Use, none, false, none, true}},
		{"P8 new, even with a dead disk", Placement{Assigned: x, AssignedOnline: true, New: true, AnyDead: true}, Decision{"P8", Create, x, false, none, false}},
		{"P8 hint elsewhere", Placement{Assigned: x, AssignedOnline: true, New: true, Hint: z}, Decision{"P8", Create, z, true, none, false}},
		{"P8' not new, all disks there", Placement{Assigned: x, AssignedOnline: true}, Decision{"P8'", Create, x, false, none, false}},
		{"P9 not new, dead disk", Placement{Assigned: x, AssignedOnline: true, AnyDead: true}, Decision{"P9", Offline, none, true, model.DirLost, false}},
		{"P10 future caught up", Placement{Assigned: x, AssignedOnline: true, Found: y, Future: x}, Decision{"P10", Promote, x, false, none, false}},
		{"P10 future behind", Placement{Assigned: x, AssignedOnline: true, Found: y, Future: x, FutureBehind: true}, Decision{"P10", Use, none, false, none, true}},
		{"P11 not in ISR", Placement{Assigned: x, AssignedOnline: true, Future: x, AnyDead: true}, Decision{"P11", Promote, x, false, none, false}},
		{"P11 others in ISR", Placement{Assigned: x, AssignedOnline: true, Future: x, InISR: true, OthersIn: true}, Decision{"P11", Promote, x, false, none, false}},
		{"P11 the only one", Placement{Assigned: x, AssignedOnline: true, Future: x, InISR: true, AnyDead: true}, Decision{"P11", Offline, none, true, model.DirLost, false}},
		{"P11 the only one, unclean allowed", Placement{Assigned: x, AssignedOnline: true, Future: x, InISR: true, Unclean: true}, Decision{"P11", Promote, x, false, none, false}},
		{"P12 moved by hand", Placement{Assigned: x, AssignedOnline: true, Found: y, AnyDead: true}, Decision{"P12", Use, none, true, none, false}},
		{"P12 with a future in a third", Placement{Assigned: x, AssignedOnline: true, Found: y, Future: z}, Decision{"P12", Use, none, true, none, true}},
		{"P13 dead, nowhere", Placement{Assigned: x, AssignedDead: true, AnyDead: true}, Decision{"P13", Offline, none, false, none, false}},
		{"P14 dead, found elsewhere", Placement{Assigned: x, AssignedDead: true, AnyDead: true, Found: y}, Decision{"P14", Use, none, true, none, false}},
		{"P15 dead, a future is left", Placement{Assigned: x, AssignedDead: true, AnyDead: true, Future: z}, Decision{"P15", Offline, none, false, none, false}},
		{"P16 directory removed from config", Placement{Assigned: x}, Decision{"P16", Create, none, true, none, false}},
		{"P17 unknown and a dead disk", Placement{Assigned: x, AnyDead: true}, Decision{"P17", Offline, none, false, none, false}},
		{"P17 known to be gone", Placement{Assigned: x, AnyDead: true, Forgotten: true}, Decision{"P17", Create, none, true, none, false}},
		{"P18 unknown, found", Placement{Assigned: x, Found: y, AnyDead: true}, Decision{"P18", Use, none, true, none, false}},
		{"P19 lost, all disks there", Placement{Assigned: model.DirLost}, Decision{"P19", Create, none, true, none, false}},
		{"P20 lost, dead disk", Placement{Assigned: model.DirLost, AnyDead: true}, Decision{"P20", Offline, none, false, none, false}},
		{"P21 lost, found", Placement{Assigned: model.DirLost, Found: y, AnyDead: true}, Decision{"P21", Use, none, true, none, false}},
	}
	for _, c := range cases {
		if got := Place(c.in); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}
