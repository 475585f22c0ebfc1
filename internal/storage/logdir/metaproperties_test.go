package logdir

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"samsa/internal/base/model"
)

var testDirID = model.DirectoryID(mustUUID("Rr22P56NSji_e-5OsqeU5A"))

func mustUUID(s string) model.UUID {
	u, err := model.ParseUUID(s)
	if err != nil {
		panic(err)
	}
	return u
}

func ptr[T any](v T) *T { return &v }

// J-01, J-08, J-09, J-10.
func TestParseMetaProperties(t *testing.T) {
	const id = "directory.id=Rr22P56NSji_e-5OsqeU5A\n"
	for name, c := range map[string]struct {
		text string
		want MetaProperties
	}{
		"v1":            {"version=1\ncluster.id=c\nnode.id=3\n" + id, MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3)), DirectoryID: testDirID, HasDirectoryID: true}},
		"v1_no_dir_id":  {"node.id=3\nversion=1\ncluster.id=c\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3))}},
		"v1_broker_id":  {"version=1\ncluster.id=c\nnode.id=3\nbroker.id=9\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3)), other: []property{{"broker.id", "9"}}}},
		"v0_explicit":   {"version=0\nbroker.id=7\ncluster.id=c\n", MetaProperties{ClusterID: ptr("c"), NodeID: ptr(model.NodeID(7))}},
		"v0_no_version": {"broker.id=7\nnode.id=8\n", MetaProperties{NodeID: ptr(model.NodeID(7)), other: []property{{"node.id", "8"}}}},
		"v0_empty":      {"", MetaProperties{}},
		"shuffled_and_escaped": {"#\n#Mon Nov 30 20:24:34 UTC 2026\ncluster.id=a\\:b\nversion = 1\nnode.\\\n  id:3\n",
			MetaProperties{Version: 1, ClusterID: ptr("a:b"), NodeID: ptr(model.NodeID(3))}},
		"empty_cluster_id":  {"version=1\ncluster.id=\nnode.id=3\n", MetaProperties{Version: 1, ClusterID: ptr(""), NodeID: ptr(model.NodeID(3))}},
		"padded_id":         {"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=Rr22P56NSji_e-5OsqeU5A==\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3)), DirectoryID: testDirID, HasDirectoryID: true}},
		"reserved_id":       {"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3)), DirectoryID: model.DirUnassigned, HasDirectoryID: true}},
		"list_and_unknown":  {"version=1\ncluster.id=c\nnode.id=3\nx.y=1\ndirectory.ids=a,b\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3)), DirectoryIDs: []string{"a", "b"}, other: []property{{"x.y", "1"}}}},
		"blanks_in_version": {"version= 1 \ncluster.id=c\nnode.id=3\n", MetaProperties{Version: 1, ClusterID: ptr("c"), NodeID: ptr(model.NodeID(3))}},
	} {
		got, err := ParseMetaProperties(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(MetaProperties{}, property{})); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
	for name, c := range map[string]struct{ text, err string }{
		"version_2":           {"version=2\ncluster.id=c\nnode.id=3\n", "Unknown meta.properties version number 2"},
		"version_negative":    {"version=-1\n", "Unknown meta.properties version number -1"},
		"version_text":        {"version=one\n", "Invalid meta.properties version string 'one'"},
		"no_cluster_id":       {"version=1\nnode.id=3\n", "cluster.id was not found."},
		"no_node_id":          {"version=1\ncluster.id=c\nbroker.id=3\n", "Failed to find node.id"},
		"node_id_text":        {"version=1\ncluster.id=c\nnode.id=three\n", "Unable to read node.id as a base-10 number."},
		"node_id_blank":       {"version=1\ncluster.id=c\nnode.id=3 \n", "Unable to read node.id as a base-10 number."},
		"broker_id_text":      {"broker.id=x\n", "Unable to read broker.id as a base-10 number."},
		"dir_id_21":           {"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=Rr22P56NSji_e-5OsqeU5\n", "Unable to read directory.id as a Uuid"},
		"dir_id_26":           {"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=Rr22P56NSji_e-5OsqeU5AAAAA\n", "Unable to read directory.id as a Uuid"},
		"dir_id_empty":        {"version=1\ncluster.id=c\nnode.id=3\ndirectory.id=\n", "Unable to read directory.id as a Uuid"},
		"not_properties_text": {"a=\\uXYZZ\n", "line 1"},
	} {
		_, err := ParseMetaProperties(c.text)
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// J-08, J-10, J-16: Kafka's bytes and order, version 1, unknown keys kept behind.
func TestMetaPropertiesBytes(t *testing.T) {
	at := time.Date(2026, 11, 3, 4, 5, 6, 0, time.UTC)
	m := MetaProperties{Version: 1, ClusterID: ptr("a:b c"), NodeID: ptr(model.NodeID(3)), DirectoryID: testDirID, HasDirectoryID: true}
	want := "#\n#Tue Nov 03 04:05:06 UTC 2026\nnode.id=3\ndirectory.id=Rr22P56NSji_e-5OsqeU5A\nversion=1\ncluster.id=a\\:b c\n"
	if got := string(m.Append(nil, at)); got != want {
		t.Errorf("version 1:\n%s\nwant\n%s", got, want)
	}
	m, err := ParseMetaProperties("broker.id=3\nx.y=1\ncluster.id=c\n")
	if err != nil {
		t.Fatal(err)
	}
	m.DirectoryIDs = []string{"p", "q"}
	want = "#\n#Tue Nov 03 04:05:06 UTC 2026\nbroker.id=3\nversion=0\ncluster.id=c\ndirectory.ids=p,q\nx.y=1\n"
	if got := string(m.Append(nil, at)); got != want {
		t.Errorf("version 0:\n%s\nwant\n%s", got, want)
	}
}

func FuzzMetaProperties(f *testing.F) {
	f.Add("#\n#Mon Nov 30 20:24:34 UTC 2026\nnode.id=1\ndirectory.id=G17bGhh9Sru1Dn1MBMTScQ\nversion=1\ncluster.id=abc\n")
	f.Add("broker.id=0\nversion=0\ncluster.id=x\\:y\ndirectory.ids=a,b,c\nq=\\u0041\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetaProperties(text)
		if err != nil {
			return
		}
		again, err := ParseMetaProperties(string(m.Append(nil, time.Unix(0, 0))))
		if err != nil {
			t.Fatalf("what was written is not understood: %v", err)
		}
		if d := cmp.Diff(m, again, cmp.AllowUnexported(MetaProperties{}, property{})); d != "" {
			t.Fatalf("(-first +second)\n%s", d)
		}
	})
}
