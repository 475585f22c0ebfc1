package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	"samsa/internal/base/config"
)

// sockets are the bound listeners of a node. Connections that come before a server takes a
// listener wait in the operating system's queue.
type sockets struct {
	bound map[string]net.Listener // by listener name
}

// bind opens every listener of the configuration. All that cannot be opened are reported at once.
func bind(cfg *config.Node) (*sockets, error) {
	s := &sockets{bound: map[string]net.Listener{}}
	var errs []error
	for _, l := range cfg.Listeners {
		addr := net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port)))
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			errs = append(errs, bindError(l.Name, addr, err))
			continue
		}
		s.bound[l.Name] = ln
	}
	if len(errs) > 0 {
		s.close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func bindError(name, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listener %s: %s is taken by another process: stop it, or give this listener another port (listeners)", name, addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listener %s: no permission to listen on %s: ports below 1024 need privileges", name, addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listener %s: %s is no address of this machine: listeners names where to bind, advertised.listeners what clients are told", name, addr)
	}
	return fmt.Errorf("listener %s: cannot listen on %s: %w", name, addr, err)
}

// take gives a listener to the server that will accept on it, which then owns it.
func (s *sockets) take(name string) net.Listener {
	ln := s.bound[name]
	return ln
}

func (s *sockets) addr(name string) string {
	if s == nil || s.bound[name] == nil {
		return ""
	}
	return s.bound[name].Addr().String()
}

// port is the port a listener is bound to: the configured one, or what the system chose for 0.
func (s *sockets) port(name string, configured int32) int32 {
	if ln := s.bound[name]; configured == 0 && ln != nil {
		return int32(ln.Addr().(*net.TCPAddr).Port)
	}
	return configured
}

func (s *sockets) close() {
	for _, ln := range s.bound {
		ln.Close() // a second close of one that its server has closed is harmless
	}
}

// advertised are listeners as others are told them: the port the system chose in place of 0.
func (s *sockets) advertised(ls []config.Listener) []config.Listener {
	out := slices.Clone(ls)
	for i := range out {
		out[i].Port = s.port(out[i].Name, out[i].Port)
		if out[i].Host == "" {
			out[i].Host = localHost()
		}
	}
	return out
}

// localHost is what a listener without a host is advertised as: the machine's canonical name.
func localHost() string {
	name, err := net.DefaultResolver.LookupCNAME(context.Background(), hostname())
	if err != nil || name == "" {
		return hostname()
	}
	if name[len(name)-1] == '.' {
		name = name[:len(name)-1]
	}
	return name
}
