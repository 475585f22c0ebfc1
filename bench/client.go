package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"samsa/internal/base/kerr"
	"samsa/internal/base/model"
	"samsa/internal/wire/protocol"
)

// client is one raw connection.
type client struct {
	conn        net.Conn
	in          *bufio.Reader
	correlation int32
	frame       []byte
}

func dial() (*client, error) {
	conn, err := dialAddr()
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 256<<10)}, nil
}

func mustDial() *client {
	c, err := dial()
	check(err)
	return c
}

func (c *client) close() { c.conn.Close() }

// alive says whether requests are served: an ApiVersions is answered.
func (c *client) alive() error {
	req := protocol.Make[protocol.ApiVersionsRequest]()
	resp := protocol.Make[protocol.ApiVersionsResponse]()
	c.conn.SetDeadline(time.Now().Add(2 * time.Second))
	defer c.conn.SetDeadline(time.Time{})
	return c.call(&req, &resp, 0)
}

// encode makes a whole frame with correlation id 0.
func encode(req protocol.Request, version int16) []byte {
	h := protocol.Make[protocol.RequestHeader]()
	h.RequestApiKey, h.RequestApiVersion = req.ApiKey(), version
	id := "bench"
	h.ClientId = &id
	b, err := h.Append(make([]byte, 4), protocol.RequestHeaderVersion(req.ApiKey(), version))
	check(err)
	b, err = req.Append(b, version)
	check(err)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// call sends a request and reads its answer.
func (c *client) call(req protocol.Request, resp protocol.Response, version int16) error {
	if _, err := c.conn.Write(encode(req, version)); err != nil {
		return err
	}
	body, err := c.read()
	if err != nil {
		return err
	}
	_, err = resp.Read(body[len(protocol.AppendResponseHeader(nil, req.ApiKey(), version, 0)):], version)
	return err
}

// read reads one answer, correlation id included; it is valid until the next read.
func (c *client) read() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if cap(c.frame) < n {
		c.frame = make([]byte, n)
	}
	c.frame = c.frame[:n]
	_, err := io.ReadFull(c.in, c.frame)
	return c.frame, err
}

// skip reads one answer without keeping it and returns its size; the first bytes go to head.
func (c *client) skip(head []byte) (int, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	k := min(n, len(head))
	if _, err := io.ReadFull(c.in, head[:k]); err != nil {
		return 0, err
	}
	_, err := c.in.Discard(n - k)
	return n, err
}

// topic is a topic that all partitions of which are served.
type topic struct {
	name       string
	id         model.UUID
	partitions int
}

// createTopics makes topics name0, name1, … and waits until all partitions are served.
func createTopics(p *process, name string, topics, partitions int) []topic {
	c := mustDial()
	defer c.close()
	req := protocol.Make[protocol.CreateTopicsRequest]()
	req.TimeoutMs = 120_000
	for i := range topics {
		t := protocol.Make[protocol.CreateTopicsRequestCreatableTopic]()
		t.Name, t.NumPartitions, t.ReplicationFactor = fmt.Sprintf("%s%d", name, i), int32(partitions), 1
		req.Topics = append(req.Topics, t)
	}
	resp := protocol.Make[protocol.CreateTopicsResponse]()
	p.until("creating topics", func() error { // a node that has just started may not be ready for it
		if err := c.call(&req, &resp, 7); err != nil {
			check(err)
		}
		if e := kerr.ForCode(resp.Topics[0].ErrorCode); e != nil && (e.Retriable || e == kerr.InvalidReplicationFactor) {
			return e // the only broker is not unfenced yet
		}
		return nil
	})
	var made []topic
	for _, t := range resp.Topics {
		if t.ErrorCode != 0 {
			p.fail(fmt.Errorf("creating %s: %s", t.Name, kerr.ForCode(t.ErrorCode).Name))
		}
		made = append(made, topic{t.Name, t.TopicId, partitions})
	}
	waitServed(p, made)
	return made
}

// waitServed returns when the end offset of every partition can be read.
func waitServed(p *process, topics []topic) {
	left := topics
	var c *client
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	p.until("serving all partitions", func() error {
		if c == nil {
			var err error
			if c, err = dial(); err != nil {
				return err
			}
		}
		resp := protocol.Make[protocol.ListOffsetsResponse]()
		if err := c.call(endOffsets(left), &resp, 6); err != nil {
			c.close()
			c = nil
			return err
		}
		missing := map[string]int16{}
		for _, t := range resp.Topics {
			for _, q := range t.Partitions {
				if q.ErrorCode != 0 {
					missing[t.Name] = q.ErrorCode
				}
			}
		}
		var next []topic
		for _, t := range left {
			if missing[t.name] != 0 {
				next = append(next, t)
			}
		}
		if left = next; len(left) > 0 {
			time.Sleep(10 * time.Millisecond)
			return fmt.Errorf("%d topics wait, %s: %s", len(left), left[0].name, kerr.ForCode(missing[left[0].name]).Name)
		}
		return nil
	})
}

// endOffsets asks for the end of every partition.
func endOffsets(topics []topic) *protocol.ListOffsetsRequest {
	req := protocol.Make[protocol.ListOffsetsRequest]()
	req.ReplicaId = -1
	for _, name := range topics {
		t := protocol.Make[protocol.ListOffsetsRequestListOffsetsTopic]()
		t.Name = name.name
		for i := range name.partitions {
			q := protocol.Make[protocol.ListOffsetsRequestListOffsetsPartition]()
			q.PartitionIndex, q.Timestamp = int32(i), -1
			t.Partitions = append(t.Partitions, q)
		}
		req.Topics = append(req.Topics, t)
	}
	return &req
}
