package api

import "samsa/internal/wire/protocol"

// entries are the keys this node serves, in order, with the versions Apache Kafka 4.4 serves
// (api-versions-4.4). A key both listeners have has the same range on both.
func entries() []entry {
	return []entry{
		{protocol.KeyProduce, 0, 13, brokerRole, decoding(serveProduce)},
		{protocol.KeyFetch, 4, 18, brokerRole, decoding(serveFetch)},
		{protocol.KeyListOffsets, 1, 11, brokerRole, decoding(serveListOffsets)},
		{protocol.KeyApiVersions, 0, 5, bothRoles, decoding(serveApiVersions)},
	}
}
