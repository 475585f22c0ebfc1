package storagetool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// metadataVersion is one level of the feature metadata.version.
type metadataVersion struct {
	level   int16
	release string
	sub     string // IV0, IV1 ...
}

func (v metadataVersion) String() string { return v.release + "-" + v.sub }

// latestProduction is the newest level of Apache Kafka 4.4.0; above it levels are unstable.
const latestProduction = 33

const (
	metadataVersionFeature = "metadata.version"
	kraftVersionFeature    = "kraft.version"
	// scramSince is the first metadata.version with SCRAM records (K-104).
	scramSince = 11
)

// metadataVersions are all levels 4.4.0 knows; 4.5-IV0 is its unstable one.
var metadataVersions = []metadataVersion{
	{7, "3.3", "IV3"}, {8, "3.4", "IV0"}, {9, "3.5", "IV0"}, {10, "3.5", "IV1"}, {11, "3.5", "IV2"},
	{12, "3.6", "IV0"}, {13, "3.6", "IV1"}, {14, "3.6", "IV2"},
	{15, "3.7", "IV0"}, {16, "3.7", "IV1"}, {17, "3.7", "IV2"}, {18, "3.7", "IV3"}, {19, "3.7", "IV4"},
	{20, "3.8", "IV0"}, {21, "3.9", "IV0"},
	{22, "4.0", "IV0"}, {23, "4.0", "IV1"}, {24, "4.0", "IV2"}, {25, "4.0", "IV3"},
	{26, "4.1", "IV0"}, {27, "4.1", "IV1"}, {28, "4.2", "IV0"}, {29, "4.2", "IV1"},
	{30, "4.3", "IV0"}, {31, "4.4", "IV0"}, {32, "4.4", "IV1"}, {33, "4.4", "IV2"}, {34, "4.5", "IV0"},
}

// feature is one feature besides metadata.version.
type feature struct {
	name string
	max  int16
	// since holds, for each level from 1 up, the metadata.version from which on a new cluster
	// has it; unset for a level that is never a default.
	since []int16
	// needs holds, for each level from 1 up, the metadata.version it cannot do without; 0: none.
	needs []int16
}

// features in the order of Kafka's version-mapping.
var features = []feature{
	{kraftVersionFeature, 1, []int16{21}, []int16{0}},
	{"transaction.version", 2, []int16{24, 24}, []int16{0, 0}},
	{"group.version", 1, []int16{22}, []int16{0}},
	{"eligible.leader.replicas.version", 1, []int16{26}, []int16{23}},
	{"share.version", 2, []int16{28, 31}, []int16{0, 0}},
	{"streams.version", 1, []int16{29}, []int16{0}},
}

// byName are the features sorted by name.
var byName = func() []feature {
	f := slices.Clone(features)
	slices.SortFunc(f, func(a, b feature) int { return strings.Compare(a.name, b.name) })
	return f
}()

// defaultLevel is the level a new cluster of that metadata.version gets.
func (f feature) defaultLevel(metadata int16) int16 {
	level := int16(0)
	for i, since := range f.since {
		if metadata >= since {
			level = int16(i + 1)
		}
	}
	return level
}

func featureOf(name string) (feature, bool) {
	i := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
	if i < 0 {
		return feature{}, false
	}
	return features[i], true
}

// levelOf finds a metadata.version by level.
func levelOf(level int16) (metadataVersion, error) {
	for _, v := range metadataVersions {
		if v.level == level {
			return v, nil
		}
	}
	return metadataVersion{}, refuse("No MetadataVersion with feature level %d. Valid feature levels are from %d to %d.",
		level, metadataVersions[0].level, metadataVersions[len(metadataVersions)-1].level)
}

// parseRelease reads --release-version: 4.0, 4.0.1, 3.7-IV2. A release means its newest level.
func parseRelease(text string, unstable bool) (metadataVersion, error) {
	key := text
	if parts := strings.Split(text, "."); len(parts) > 2 {
		key = parts[0] + "." + parts[1]
	}
	var known []string
	var found *metadataVersion
	for i, v := range metadataVersions {
		if v.level > latestProduction && !unstable {
			continue
		}
		known = append(known, v.String())
		if key == v.String() || key == v.release && v.level <= latestProduction { // an unstable release has no short name
			found = &metadataVersions[i]
		}
	}
	if found == nil {
		return metadataVersion{}, refuse("Unknown metadata.version '%s'. Supported metadata.version are: %s", text, strings.Join(known, ", "))
	}
	return *found, nil
}

// parseFeatures reads --feature name=level; of a name that comes twice the last one counts.
func parseFeatures(args []string) (map[string]int16, error) {
	levels := map[string]int16{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, refuse("Can't parse feature=level string %s: equals sign not found.", arg)
		}
		text = strings.TrimSpace(text)
		level, err := strconv.ParseInt(text, 10, 16)
		if err != nil {
			return nil, refuse("Can't parse feature=level string %s: unable to parse %s as a short.", arg, text)
		}
		levels[strings.TrimSpace(name)] = int16(level)
	}
	return levels, nil
}

// effectiveVersion decides the metadata.version of the new cluster (K-104).
func effectiveVersion(release string, levels map[string]int16, unstable bool) (metadataVersion, error) {
	var v metadataVersion
	var err error
	level, byFeature := levels[metadataVersionFeature]
	if release != "" {
		if v, err = parseRelease(release, unstable); err != nil {
			return v, err
		}
	}
	switch {
	case byFeature && release != "":
		return v, refuse("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
	case byFeature:
		if v, err = levelOf(level); err != nil {
			return v, err
		}
	case release != "":
	case unstable:
		return metadataVersions[len(metadataVersions)-1], nil
	default:
		return levelOf(latestProduction)
	}
	if v.level > latestProduction && !unstable {
		return v, refuse("metadata.version %s is not yet stable.", v)
	}
	return v, nil
}

// effectiveLevels decides the level of every other feature, kraft.version included (K-102, K-104).
func effectiveLevels(v metadataVersion, asked map[string]int16, dynamic bool) (map[string]int16, error) {
	levels := map[string]int16{}
	for name, level := range asked {
		if name == metadataVersionFeature {
			continue
		}
		if _, ok := featureOf(name); !ok {
			var names []string
			for _, f := range byName {
				names = append(names, f.name)
			}
			return nil, refuse("Unsupported feature: %s. Supported features are: %s", name, strings.Join(names, ", "))
		}
		levels[name] = level
	}
	for _, f := range byName {
		level, ok := levels[f.name]
		switch {
		case f.name == kraftVersionFeature:
			var err error
			if level, err = effectiveKRaft(level, ok, dynamic); err != nil {
				return nil, err
			}
		case !ok:
			level = f.defaultLevel(v.level)
		}
		levels[f.name] = level
	}
	for _, f := range byName {
		level := levels[f.name]
		if level < 0 || level > f.max {
			return nil, refuse("No feature:%s with feature level %d", f.name, level)
		}
		if level > 0 && f.needs[level-1] > v.level {
			return nil, refuse("%s could not be set to %d because it depends on metadata.version level %d", f.name, level, f.needs[level-1])
		}
	}
	return levels, nil
}

func effectiveKRaft(level int16, asked, dynamic bool) (int16, error) {
	const advice = "controller.quorum.voters is empty and one of the flags --standalone, --initial-controllers, or --no-initial-controllers is used. "
	switch {
	case asked && level == 0 && dynamic:
		return 0, refuse("Cannot set kraft.version to 0 if " + advice +
			"For dynamic controllers support, try removing the --feature flag for kraft.version.")
	case asked && level != 0 && !dynamic:
		return 0, refuse("Cannot set kraft.version to %d unless "+advice+
			"For dynamic controllers support, try using one of --standalone, --initial-controllers, or --no-initial-controllers"+
			" and removing controller.quorum.voters.", level)
	case asked:
		return level, nil
	case dynamic:
		return 1, nil
	}
	return 0, nil
}

// VersionMapping is `version-mapping`: the features of a release.
func VersionMapping(release string) (string, error) {
	if release == "" {
		v, _ := levelOf(latestProduction)
		release = v.String()
	}
	v, err := parseRelease(release, true)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "metadata.version=%d (%s)\n", v.level, release)
	for _, f := range features {
		fmt.Fprintf(&b, "%s=%d\n", f.name, f.defaultLevel(v.level))
	}
	return b.String(), nil
}

// FeatureDependencies is `feature-dependencies`. What was found before a mistake is returned with it.
func FeatureDependencies(args []string) (string, error) {
	var b strings.Builder
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return b.String(), refuse("Invalid feature format: %s. Expected format: 'feature=version' (e.g. 'group.version=1')", arg)
		}
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		n, err := strconv.ParseInt(text, 10, 16)
		if err != nil {
			return b.String(), refuse("Invalid version format: %s for feature %s", text, name)
		}
		level := int16(n)
		if name == metadataVersionFeature {
			v, err := levelOf(level)
			if err != nil {
				return b.String(), refuse("Unknown metadata.version %d", level)
			}
			fmt.Fprintf(&b, "%s=%d (%s) has no dependencies.\n", name, level, v)
			continue
		}
		f, ok := featureOf(name)
		if !ok {
			return b.String(), refuse("Unknown feature: %s", name)
		}
		if level < 0 || level > f.max {
			return b.String(), refuse("Feature level %d is not supported for feature %s", level, name)
		}
		if level == 0 || f.needs[level-1] == 0 {
			fmt.Fprintf(&b, "%s=%d has no dependencies.\n", name, level)
			continue
		}
		v, _ := levelOf(f.needs[level-1])
		fmt.Fprintf(&b, "%s=%d requires:\n    metadata.version=%d (%s)\n", name, level, v.level, v)
	}
	return b.String(), nil
}
