package main

import (
	"io/fs"
	"testing"
)

func TestCgroupLimit(t *testing.T) {
	for name, c := range map[string]struct {
		membership string
		files      map[string]string
		want       int64
	}{
		"version 2":                          {"0::/kube/pod\n", map[string]string{"/kube/pod/memory.max": "67108864\n"}, 64 << 20},
		"version 2, the parent's is smaller": {"0::/a/b\n", map[string]string{"/a/b/memory.max": "300", "/a/memory.max": "200", "/memory.max": "max"}, 200},
		"version 2, own namespace":           {"0::/\n", map[string]string{"/memory.max": "500"}, 500},
		"no limit":                           {"0::/\n", map[string]string{"/memory.max": "max\n"}, 0},
		"version 1":                          {"5:cpu:/x\n4:memory:/docker/1\n", map[string]string{"memory/docker/1/memory.limit_in_bytes": "1000"}, 1000},
		"version 1, no limit":                {"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712"}, 0},
		"version 1, path of the host":        {"4:memory:/docker/1\n", map[string]string{"memory/memory.limit_in_bytes": "1000"}, 1000},
		"nothing to read":                    {"0::/x\n", nil, 0},
		"damaged":                            {"what\n0:\n", map[string]string{"/memory.max": "12x"}, 0},
	} {
		got, ok := cgroupLimit(c.membership, func(name string) (string, error) {
			if text, there := c.files[name]; there {
				return text, nil
			}
			return "", fs.ErrNotExist
		})
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d, %v; want %d", name, got, ok, c.want)
		}
	}
}
