package main

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"samsa/internal/wire/protocol"
)

// runFloor is the least a broker can do, as a process of its own: `bench floor ADDR DIR`. It keeps
// no offsets, no topics and no index; every connection appends to a file of its own, and a fetch is
// answered with a megabyte of one file.
func runFloor(args []string) {
	ln, err := net.Listen("tcp", args[0])
	check(err)
	data, err := os.Create(filepath.Join(args[1], "fetch"))
	check(err)
	_, err = data.Write(make([]byte, floorFetch))
	check(err)
	for n := 0; ; n++ {
		conn, err := ln.Accept()
		check(err)
		f, err := os.Create(filepath.Join(args[1], "log-"+string(rune('a'+n%26))))
		check(err)
		go floorConn(conn.(*net.TCPConn), f, data)
	}
}

// floorFetch is how many bytes a fetch is answered with.
const floorFetch = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func floorConn(conn *net.TCPConn, f, data *os.File) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 256<<10)
	var size [4]byte
	frame := make([]byte, 1<<20)
	at := int64(0)
	for {
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(size[:]))
		if n > len(frame) {
			return
		}
		if _, err := io.ReadFull(in, frame[:n]); err != nil {
			return
		}
		h, headerVersion, body, err := protocol.ReadRequestHeader(frame[:n])
		if err != nil || headerVersion == 0 {
			return
		}
		switch h.RequestApiKey {
		case protocol.KeyProduce:
			w, _, err := protocol.WalkProduce(body, h.RequestApiVersion)
			check(err)
			for w.Next() {
				if crc32.Checksum(w.Records[21:], castagnoli) != binary.BigEndian.Uint32(w.Records[17:]) {
					return
				}
				_, err := f.WriteAt(w.Records, at)
				check(err)
				if at += int64(len(w.Records)); at > 1<<30 {
					at = 0
				}
			}
			answer := make([]byte, 4, 64)
			answer = protocol.AppendResponseHeader(answer, h.RequestApiKey, h.RequestApiVersion, h.CorrelationId)
			answer = append(answer, make([]byte, 40)...)
			binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
			conn.Write(answer)
		case protocol.KeyFetch:
			answer := binary.BigEndian.AppendUint32(nil, floorFetch+4)
			answer = binary.BigEndian.AppendUint32(answer, uint32(h.CorrelationId))
			conn.Write(answer)
			floorSend(conn, data)
		default:
			answer := binary.BigEndian.AppendUint32(nil, 10)
			answer = binary.BigEndian.AppendUint32(answer, uint32(h.CorrelationId))
			conn.Write(append(answer, 0, 0, 0, 0, 0, 0))
		}
	}
}

func floorSend(conn *net.TCPConn, data *os.File) {
	raw, err := conn.SyscallConn()
	check(err)
	offset, left := int64(0), floorFetch
	raw.Write(func(fd uintptr) bool {
		for left > 0 {
			n, err := unix.Sendfile(int(fd), int(data.Fd()), &offset, left)
			if err == unix.EAGAIN {
				return false
			}
			if err != nil {
				return true
			}
			left -= n
		}
		return true
	})
}
