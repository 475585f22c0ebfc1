package storagetool

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"samsa/internal/base/model"
	"samsa/internal/base/vfs"
)

// K-103: vectors of --initial-controllers, IPv6 and every mistake.
func TestParseVoters(t *testing.T) {
	id := model.DirectoryID{0: 0x10, 15: 99}
	d := id.String()
	for text, want := range map[string][]Voter{
		"1@host:9093:" + d: {{1, "host", 9093, id}},
		" 1@host:0:" + d + ", 2@[::1]:65535:" + d + ",": {{1, "host", 0, id}, {2, "::1", 65535, id}},
		"0@:9093:" + d + "==":                           {{0, "", 9093, id}},
	} {
		got, err := ParseVoters(text)
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: %v, %v", text, got, err)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: %v, want %v", text, got[i], want[i])
			}
		}
	}
	for text, want := range map[string]string{
		"":                           "No voters given.",
		" , ":                        "No voters given.",
		"1":                          "No @ found in dynamic voter string.",
		"@host:1:" + d:               "Invalid @ at beginning of dynamic voter string.",
		"x@host:1:" + d:              "Failed to parse node id in dynamic voter string.",
		"-1@host:1:" + d:             "Invalid negative node id -1 in dynamic voter string.",
		"1@":                         "No hostname found after node id.",
		"1@[::1:1:" + d:              "Hostname began with left bracket, but no right bracket was found.",
		"1@host":                     "No colon following hostname could be found.",
		"1@[::1]9:" + d:              "Port section must start with a colon.",
		"1@host:9093":                "No colon following port could be found.",
		"1@host:x:" + d:              "Failed to parse port in dynamic voter string.",
		"1@host:65536:" + d:          "Invalid port 65536 in dynamic voter string.",
		"1@host:9093:x":              "Failed to parse directory ID in dynamic voter string.",
		"1@h:1:" + d + ",1@h:2:" + d: "Node id 1 was specified more than once.",
	} {
		if _, err := ParseVoters(text); errText(err) != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// K-108: SCRAM arguments; the first is the example of RFC 7677.
func TestParseScram(t *testing.T) {
	records, err := parseScram([]string{`SCRAM-SHA-256=[name=user,password=pencil,salt="W22ZaJ0SNY7soEsUEjb6gQ=="]`, `SCRAM-SHA-512=[name=bob,salt="N3E=",saltedpassword="YCE="]`})
	if err != nil {
		t.Fatal(err)
	}
	r := records[0]
	b64 := base64.StdEncoding.EncodeToString
	if r.Name != "user" || r.Mechanism != 1 || r.Iterations != 4096 || b64(r.StoredKey) != "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=" ||
		b64(r.ServerKey) != "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=" {
		t.Errorf("%+v", r)
	}
	r = records[1]
	if r.Name != "bob" || r.Mechanism != 2 || r.Iterations != 4096 || string(r.Salt) != "7q" || len(r.StoredKey) != 64 || len(r.ServerKey) != 64 {
		t.Errorf("%+v", r)
	}
	for arg, want := range map[string]string{
		"foo":                                                "Failed to find equals sign in SCRAM argument 'foo'",
		"SCRAM-SHA-1=[name=a,password=b]":                    "The add-scram mechanism SCRAM-SHA-1 is not supported.",
		"SCRAM-SHA-256=name=a,password=b]":                   "Expected configuration string to start with [",
		"SCRAM-SHA-256=[name=a,password=b":                   "Expected configuration string to end with ]",
		"SCRAM-SHA-256=[password=b]":                         "You must supply 'name' to add-scram",
		"SCRAM-SHA-256=[name=a]":                             "You must supply one of 'password' or 'saltedpassword' to add-scram",
		"SCRAM-SHA-256=[name=a,saltedpassword=YCE=]":         "You must supply 'salt' with 'saltedpassword' to add-scram",
		"SCRAM-SHA-256=[name=a,password=b,salt=*]":           "Failed to decode given salt: *",
		"SCRAM-SHA-256=[name=a,password=b,iterations=x]":     "Failed to parse iterations count: x",
		"SCRAM-SHA-256=[name=a,password=b,iterations=10]":    "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
		"SCRAM-SHA-512=[name=a,password=b,iterations=16385]": "The 'iterations' value must be <= 16384 for add-scram using SCRAM_SHA_512",
		"SCRAM-SHA-256=[name=a,password=b,foo=1,bar=2]":      "Unknown SCRAM configurations: bar, foo",
		"SCRAM-SHA-256=[name=a,password=se,cret]":            "No equals sign found in a SCRAM component",
		"SCRAM-SHA-256=[]":                                   "No equals sign found in a SCRAM component",
	} {
		_, err := parseScram([]string{arg})
		if !strings.HasPrefix(errText(err), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
		if strings.Contains(errText(err), "cret") {
			t.Errorf("%s: the error holds a part of the password", arg)
		}
	}
	if text := newBootstrapRecords(metadataVersions[0], nil, records).String(); strings.Contains(text, "99, 50") || !strings.Contains(text, "storedKey=(hidden)") {
		t.Errorf("a secret is printed: %s", text)
	}
}

// K-104: the features of a new cluster by release.
func TestDefaultFeatures(t *testing.T) {
	for release, want := range map[string]string{
		"3.3-IV3": "metadata.version=7",
		"3.9":     "metadata.version=21",
		"4.0":     "metadata.version=25 group.version=1 transaction.version=2",
		"4.0.1":   "metadata.version=25 group.version=1 transaction.version=2",
		"4.2":     "metadata.version=29 eligible.leader.replicas.version=1 group.version=1 share.version=1 streams.version=1 transaction.version=2",
		"":        "metadata.version=33 eligible.leader.replicas.version=1 group.version=1 share.version=2 streams.version=1 transaction.version=2",
	} {
		v, err := effectiveVersion(release, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		levels, err := effectiveLevels(v, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range newBootstrapRecords(v, levels, nil).features {
			got = append(got, f.Name+"="+string('0'+rune(f.FeatureLevel/10))+string('0'+rune(f.FeatureLevel%10)))
		}
		if g := strings.ReplaceAll(strings.Join(got, " "), "=0", "="); g != want {
			t.Errorf("%q: %s, want %s", release, g, want)
		}
		if levels[kraftVersionFeature] != 1 {
			t.Errorf("%q: kraft.version %d (K-102)", release, levels[kraftVersionFeature])
		}
	}
}

// J-32: info over every state.
func TestInfo(t *testing.T) {
	good := "version=1\ncluster.id=c\nnode.id=3\ndirectory.id=" + idOf(1) + "\n"
	for name, c := range map[string]struct {
		d1, d2 string
		ok     bool
		want   []string
	}{
		"good":          {good, "version=1\ncluster.id=c\nnode.id=3\n", true, []string{"Found log directories:\n  /d1\n  /d2\n\nFound metadata: {cluster.id=c, directory.id=" + idOf(1) + ", node.id=3, version=1}\n\n", "Directory IDs:\n  /d1: " + idOf(1)}},
		"missing":       {good, "", false, []string{"Found log directory:\n  /d1\n", "Found problem:\n  /d2 does not exist\n\n"}},
		"unformatted":   {good, "-", false, []string{"Found problem:\n  /d2 is not formatted.\n\n"}},
		"file":          {good, "file", false, []string{"  /d2 is not a directory\n"}},
		"invalid":       {good, "version=2\n", false, []string{"  Error loading /d2/meta.properties: Unknown meta.properties version number 2\n"}},
		"other_cluster": {good, "version=1\ncluster.id=x\nnode.id=3\n", false, []string{"  Mismatched cluster IDs between storage directories.\n"}},
		"other_node":    {good, "version=1\ncluster.id=c\nnode.id=4\n", false, []string{"  Mismatched node IDs between storage directories.\n"}},
		"both_other":    {good, "version=1\ncluster.id=x\nnode.id=4\n", false, []string{"Found problem:\n  Mismatched cluster IDs between storage directories.\n"}},
		"v0":            {"broker.id=3\ncluster.id=c\n", good, false, []string{"the directories are formatted for legacy mode.", "Found metadata: {broker.id=3, cluster.id=c, version=0}"}},
		"v0_second":     {good, "broker.id=3\ncluster.id=c\n", true, nil},
		"both_missing":  {"", "", false, []string{"Found problems:\n  /d1 does not exist\n  /d2 does not exist\n\n"}},
		"duplicate_id":  {good, good, true, nil},
	} {
		mem, out := vfs.NewMem(), &bytes.Buffer{}
		for dir, text := range map[string]string{"/d1": c.d1, "/d2": c.d2} {
			switch text {
			case "":
			case "-":
				mem.Mkdir(dir, 0o755)
			case "file":
				put(t, mem, dir, "x")
			default:
				put(t, mem, dir+"/meta.properties", text)
			}
		}
		if ok := Info(out, mem, []string{"/d2", "/d1"}, "/d1"); ok != c.ok {
			t.Errorf("%s: %v\n%s", name, ok, out)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", name, w, out)
			}
		}
	}
}

func FuzzParseVoters(f *testing.F) {
	f.Add("1@host:9093:" + idOf(9) + ",2@[::1]:1:" + idOf(8))
	f.Fuzz(func(t *testing.T, text string) {
		voters, err := ParseVoters(text)
		if err == nil && len(voters) == 0 {
			t.Fatal("no voters and no error")
		}
	})
}

func FuzzParseScram(f *testing.F) {
	f.Add("SCRAM-SHA-256=[name=a,password=b]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 200 {
			parseScram([]string{text})
		}
	})
}

// K-103: IPv6 hosts of voters as Java spells them.
func TestVoterHost(t *testing.T) {
	for host, want := range map[string]string{
		"::1": "0:0:0:0:0:0:0:1", "2001:db8::a00": "2001:db8:0:0:0:0:0:a00", "::ffff:10.0.0.1": "10.0.0.1",
		"10.0.0.1": "10.0.0.1", "host.example": "host.example", "": "", "fe80::1%eth0": "fe80::1%eth0",
	} {
		if got := javaHost(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
