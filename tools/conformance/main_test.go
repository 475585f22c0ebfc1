package main

import "testing"

func TestJudge(t *testing.T) {
	known := map[string][]string{"TestA": {"internal/storage/partlog"}, "TestB": {"internal/edge/api"}}
	outcome := map[string]string{"samsa/internal/storage/partlog TestA": "pass", "samsa/internal/edge/api TestB": "skip"}
	for name, c := range map[string]struct {
		state, kind string
		wrong       int
	}{
		"open":         {"open", "open", 0},
		"later":        {"later: compaction", "later", 0},
		"passed":       {"partlog.TestA", "proven", 0},
		"long_path":    {"storage/partlog.TestA", "proven", 0},
		"skipped":      {"partlog.TestA, api.TestB", "proven", 1},
		"other_pkg":    {"api.TestA", "proven", 1},
		"missing":      {"partlog.TestGone", "proven", 1},
		"differs":      {"differs: Kafka hangs; partlog.TestA", "differs", 0},
		"words":        {"surely fine", "open", 1},
		"suffix_trick": {"log.TestA", "proven", 1},
	} {
		kind, wrong := judge(row{id: "D-01", state: c.state}, known, outcome)
		if kind != c.kind || len(wrong) != c.wrong {
			t.Errorf("%s: %s with %q, want %s with %d mistakes", name, kind, wrong, c.kind, c.wrong)
		}
	}
}

func TestParsePage(t *testing.T) {
	rows := parsePage("x.md", "prose\n| id | what | state |\n| --- | --- | --- |\n| D-01 | a | b | open |\n| K-2 | c | partlog.TestA |\n")
	if len(rows) != 2 || rows[0].id != "D-01" || rows[0].state != "open" || rows[1].state != "partlog.TestA" || rows[1].line != 5 {
		t.Errorf("rows %+v", rows)
	}
}
