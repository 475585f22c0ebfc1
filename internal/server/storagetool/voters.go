package storagetool

import (
	"strconv"
	"strings"

	"samsa/internal/base/model"
)

// Voter is one entry of --initial-controllers.
type Voter struct {
	ID        model.NodeID
	Host      string
	Port      uint16
	Directory model.DirectoryID
}

// ParseVoters reads id@host:port:directory, separated by commas; an IPv6 host stands in brackets.
// The result has at least one voter and no id twice (K-103).
func ParseVoters(text string) ([]Voter, error) {
	var voters []Voter
	seen := map[model.NodeID]bool{}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if part == "" {
			continue
		}
		v, err := parseVoter(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		voters = append(voters, v)
	}
	if len(voters) == 0 {
		return nil, refuse("No voters given.")
	}
	for _, v := range voters {
		if seen[v.ID] {
			return nil, refuse("Node id %d was specified more than once.", v.ID)
		}
		seen[v.ID] = true
	}
	return voters, nil
}

func parseVoter(text string) (Voter, error) {
	var v Voter
	idText, rest, ok := strings.Cut(text, "@")
	if !ok {
		return v, refuse("No @ found in dynamic voter string.")
	}
	if idText == "" {
		return v, refuse("Invalid @ at beginning of dynamic voter string.")
	}
	id, err := strconv.ParseInt(idText, 10, 32)
	if err != nil {
		return v, refuse("Failed to parse node id in dynamic voter string.")
	}
	if id < 0 {
		return v, refuse("Invalid negative node id %d in dynamic voter string.", id)
	}
	v.ID = model.NodeID(id)
	if rest == "" {
		return v, refuse("No hostname found after node id.")
	}
	if inner, bracketed := strings.CutPrefix(rest, "["); bracketed {
		if v.Host, rest, ok = strings.Cut(inner, "]"); !ok {
			return v, refuse("Hostname began with left bracket, but no right bracket was found.")
		}
	} else {
		colon := strings.IndexByte(rest, ':')
		if colon < 0 {
			return v, refuse("No colon following hostname could be found.")
		}
		v.Host, rest = rest[:colon], rest[colon:]
	}
	if rest, ok = strings.CutPrefix(rest, ":"); !ok {
		return v, refuse("Port section must start with a colon.")
	}
	portText, dirText, ok := strings.Cut(rest, ":")
	if !ok {
		return v, refuse("No colon following port could be found.")
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return v, refuse("Failed to parse port in dynamic voter string.")
	}
	if port < 0 || port > 65535 {
		return v, refuse("Invalid port %d in dynamic voter string.", port)
	}
	v.Port = uint16(port)
	dir, err := model.ParseUUID(dirText)
	if err != nil {
		return v, refuse("Failed to parse directory ID in dynamic voter string.")
	}
	v.Directory = model.DirectoryID(dir)
	if v.Directory.Reserved() {
		// Kafka takes the zero id, and its node then never starts.
		return v, refuse("The directory ID %s of voter %d is reserved; draw one with `samsa storage random-uuid`.", v.Directory, v.ID)
	}
	return v, nil
}
