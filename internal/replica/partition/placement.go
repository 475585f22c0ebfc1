package partition

import "samsa/internal/base/model"

// Placement is what is known when a broker decides in which directory its replica of a partition lives
// (KIP-858, the table of J-105). Everything is per topic id: a log of another id is never "found" (J-106).
type Placement struct {
	Assigned model.DirectoryID // this broker's directory for the replica in the metadata
	// AssignedOnline: Assigned is one of the online directories. AssignedDead: it is known to be one that failed
	// or was not there at start. Neither: an id this broker has never had, or cannot name.
	AssignedOnline, AssignedDead bool

	Found    model.DirectoryID // the online directory that holds the log; zero: none does
	Future   model.DirectoryID // the online directory that holds a future log; zero: none
	Hint     model.DirectoryID // the online directory an operator wants it in (J-141); zero: none
	AnyDead  bool              // some configured directory is offline
	Initial  bool              // the first image of this process
	New      bool              // assigned UNASSIGNED, or partition or membership appeared after the first image
	InISR    bool              // this broker is in the ISR or ELR
	OthersIn bool              // another broker is in the ISR
	Unclean  bool              // unclean.leader.election.enable of the topic
	// Forgotten: the ids of all directories this node ever had are known, and Assigned is not among them (P17).
	Forgotten bool
	// FutureBehind: the future log ends before the current one.
	FutureBehind bool
}

// Action is what to do with the replica's log.
type Action uint8

const (
	// Offline: no log can be used: requests get KAFKA_STORAGE_ERROR (J-109).
	Offline Action = iota
	// Use the log that was found.
	Use
	// Create a log, in Decision.Dir or, if that is zero, in the least loaded online directory.
	Create
	// Promote the future log to be the log.
	Promote
)

func (a Action) String() string {
	return [...]string{"offline", "use", "create", "promote"}[a]
}

// Decision is the answer to a Placement.
type Decision struct {
	Row    string // of J-105, for the log
	Action Action
	Dir    model.DirectoryID // of Create: zero is least loaded; of Promote: the future's
	// Report: the controller must be told where the log is: in Lost, or, if that is zero, where it ends up.
	Report bool
	Lost   model.DirectoryID
	// Move: a future log is there whose copying goes on.
	Move bool
}

// Place decides. An existing log is always used first, whatever the metadata says; only creation is
// conditional (J-107): a directory that is not there may hold the log.
func Place(p Placement) Decision {
	var none model.DirectoryID
	found, future := p.Found != none, p.Future != none
	create := func(row string, dir model.DirectoryID) Decision {
		if p.Hint != none {
			dir = p.Hint
		}
		return Decision{Row: row, Action: Create, Dir: dir, Report: dir == none || dir != p.Assigned}
	}
	use := func(row string) Decision {
		return Decision{Row: row, Action: Use, Report: p.Found != p.Assigned, Move: future}
	}
	lost := func(row string) Decision {
		return Decision{Row: row, Action: Offline, Report: p.Assigned != model.DirLost, Lost: model.DirLost}
	}
	nothing := func(row string) Decision { return Decision{Row: row, Action: Offline} }

	switch {
	case p.Assigned == model.DirUnassigned:
		switch {
		case found:
			return use("P1")
		case p.Initial && p.InISR && p.AnyDead:
			return lost("P2b")
		}
		return create("P2", none)

	case p.Assigned == model.DirMigrating:
		switch {
		case found:
			return use("P3")
		case !p.AnyDead:
			return create("P4", none)
		}
		return lost("P5")

	case p.Assigned == model.DirLost:
		switch {
		case found:
			return use("P21")
		case !p.AnyDead:
			return create("P19", none)
		}
		return nothing("P20")

	case p.AssignedOnline:
		return placeOnline(p, create, use, lost)

	case p.AssignedDead:
		switch {
		case found:
			return use("P14")
		case future:
			return nothing("P15") // left untouched: it may be behind
		}
		return nothing("P13")

	default: // an id of nobody here
		switch {
		case found:
			return use("P18")
		case !p.AnyDead:
			return create("P16", none)
		case p.Forgotten:
			return create("P17", none)
		}
		return nothing("P17")
	}
}

// placeOnline is the rows where the metadata names an online directory.
func placeOnline(p Placement, create func(string, model.DirectoryID) Decision, use, lost func(string) Decision) Decision {
	var none model.DirectoryID
	switch {
	case p.Found == p.Assigned:
		if p.Future != none {
			return use("P7")
		}
		return use("P6")
	case p.Found != none && p.Future == p.Assigned:
		d := Decision{Row: "P10", Action: Promote, Dir: p.Future}
		if p.FutureBehind { // finish copying, then promote without another report
			d.Action, d.Dir, d.Move = Use, none, true
		}
		return d
	case p.Found != none:
		return use("P12")
	case p.Future == p.Assigned: // the current directory is dead (J-150)
		if p.InISR && !p.OthersIn && !p.Unclean {
			return lost("P11")
		}
		return Decision{Row: "P11", Action: Promote, Dir: p.Future}
	case p.New:
		return create("P8", p.Assigned)
	case !p.AnyDead:
		return create("P8'", p.Assigned)
	}
	return lost("P9")
}
