package logdir

import (
	"testing"

	"samsa/internal/base/model"
)

// J-105 (creation), J-108, J-175, T-105, D-54: which directory takes a new log.
func TestPlace(t *testing.T) {
	a, b, c, unknown := model.DirectoryID{1}, model.DirectoryID{2}, model.DirectoryID{3}, model.DirectoryID{9}
	healthy := []seat{{id: a, online: true, logs: 4}, {id: b, online: true, logs: 2}, {id: c, online: true, logs: 2}}
	broken := []seat{{id: a, online: true, logs: 4}, {id: b, online: false, logs: 0}, {id: c, online: true, logs: 5}}
	dead := []seat{{id: a}, {id: b}}
	cordoned := []seat{{id: a, online: true, logs: 4}, {id: b, online: true, cordoned: true}, {id: c, online: true, logs: 5}}
	allCordoned := []seat{{id: a}, {id: b, online: true, cordoned: true, logs: 9}, {id: c, online: true, cordoned: true}}
	for name, tc := range map[string]struct {
		seats    []seat
		assigned model.DirectoryID
		isNew    bool
		want     int
		fixed    bool
	}{
		"fewest_logs_first_of_equals":   {healthy, model.DirUnassigned, true, 1, false},
		"named_and_online":              {healthy, a, true, 0, true},
		"named_and_online_not_new":      {healthy, a, false, 0, true},
		"lost_is_placed_again":          {healthy, model.DirLost, false, 1, false},
		"migrating_is_placed":           {healthy, model.DirMigrating, false, 1, false},
		"unknown_id_all_online":         {healthy, unknown, false, 1, false},
		"new_and_unassigned_one_dead":   {broken, model.DirUnassigned, true, 0, false},
		"new_and_named_online_one_dead": {broken, c, true, 2, true},
		"not_new_one_dead":              {broken, a, false, -1, false},
		"new_and_named_dead":            {broken, b, true, -1, false},
		"new_and_unknown_one_dead":      {broken, unknown, true, -1, false},
		"nothing_online":                {dead, model.DirUnassigned, true, -1, false},
		"cordoned_is_skipped":           {cordoned, model.DirUnassigned, true, 0, false},
		"cordoned_but_named":            {cordoned, b, true, 1, true},
		"all_cordoned_first_online":     {allCordoned, model.DirUnassigned, true, 1, false},
		"no_seat_at_all":                {nil, model.DirUnassigned, true, -1, false},
	} {
		got := place(tc.seats, tc.assigned, tc.isNew)
		if got.seat != tc.want || got.fixed != tc.fixed {
			t.Errorf("%s: %+v, want seat %d, fixed %v", name, got, tc.want, tc.fixed)
		}
		if got.seat < 0 && got.why == "" {
			t.Errorf("%s: no reason", name)
		}
	}
}
