package harness

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// Ping asks the broker at addr for its metadata and wants to see a live broker in the answer.
func Ping(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(2 * time.Second))
	// Metadata v1 of no topic: header v1 with an empty client id, an empty array.
	if _, err := conn.Write([]byte{0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	var head [12]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if brokers := binary.BigEndian.Uint32(head[8:]); brokers == 0 {
		return fmt.Errorf("no broker is live yet")
	}
	return nil
}
