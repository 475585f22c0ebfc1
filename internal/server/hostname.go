package server

import "os"

// hostname is the machine's name, or localhost where it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}
