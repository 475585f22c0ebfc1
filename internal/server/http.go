package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// httpServer serves /metrics, /healthz and /readyz on samsa.http.listener.
type httpServer struct {
	ln     net.Listener
	server *http.Server
	done   chan struct{}
}

func (n *Node) startHTTP() error {
	addr := n.options.Config.Samsa.HTTPListener
	if addr == "" {
		return nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("samsa.http.listener: %w", bindError("HTTP", addr, err))
	}
	n.nodeMetrics()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", n.metrics.Handler())
	mux.HandleFunc("GET /healthz", n.healthz)
	mux.HandleFunc("GET /readyz", n.readyz)
	n.http = &httpServer{
		ln: ln, done: make(chan struct{}),
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10},
	}
	go func() {
		defer close(n.http.done)
		if err := n.http.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			n.log.Warn("the HTTP listener ended", "err", err)
		}
	}()
	return nil
}

// healthz says whether the process should be left running: 200 until the node has failed.
func (n *Node) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := n.failure(); err != nil {
		http.Error(w, "failed: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz says whether the node serves its clients.
func (n *Node) readyz(w http.ResponseWriter, _ *http.Request) {
	if !n.Ready() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (h *httpServer) addr() string {
	if h == nil {
		return ""
	}
	return h.ln.Addr().String()
}

func (h *httpServer) close() {
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		h.server.Close()
	}
	<-h.done
}
