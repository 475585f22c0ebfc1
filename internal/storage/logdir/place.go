package logdir

import (
	"samsa/internal/base/model"
)

// seat is what placement looks at in a directory.
type seat struct {
	id       model.DirectoryID
	online   bool
	cordoned bool
	logs     int // current and future logs, those being created included
}

// placement is the answer of place.
type placement struct {
	seat  int  // index; -1: nowhere
	fixed bool // the metadata named it: no other directory may stand in (J-108)
	why   string
}

// place chooses the directory of a new log (J-105, J-108, T-105, D-54).
//
// A log that is not new is made only while no directory is offline: it might be on the dead
// disk. An id that names an online directory is obeyed. An id that names nothing online, while some
// directory is offline, may name the dead one, so nothing is made. Otherwise the online directory with the fewest
// logs takes it, the first in configured order among equals; cordoned ones only when all are (J-175).
func place(seats []seat, assigned model.DirectoryID, isNew bool) placement {
	offline := false
	for _, s := range seats {
		offline = offline || !s.online
	}
	if !isNew && offline {
		return placement{seat: -1, why: "it is not new, and a log directory that may hold it is offline"}
	}
	if !assigned.Reserved() {
		for i, s := range seats {
			if s.id == assigned && s.online {
				return placement{seat: i, fixed: true}
			}
		}
		if offline {
			return placement{seat: -1, why: "its directory " + assigned.String() + " is not online"}
		}
	}
	best := -1
	for pass := 0; pass < 2 && best < 0; pass++ {
		for i, s := range seats {
			if s.online && (!s.cordoned || pass == 1) && (best < 0 || s.logs < seats[best].logs) {
				best = i
			}
			if pass == 1 && best >= 0 {
				break // all are cordoned: the first online one
			}
		}
	}
	if best < 0 {
		return placement{seat: -1, why: "no log directory is online"}
	}
	return placement{seat: best}
}
