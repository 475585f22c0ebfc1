// Package config knows every property of Apache Kafka 4.4 and of samsa: its type, default,
// range, who may change it while the node runs, and what it means.
//
// Kind: pure. Files, the environment and flags are handed in as bytes and strings.
//
// # Who uses what
//
//   - The command line calls Load with the bytes of server.properties, the environment and the
//     --set flags and gets a *Node, or a Mistakes that lists everything wrong at once.
//   - A running node keeps the *Node of its start and calls Node.WithDynamic when the metadata
//     image brings other dynamic configs; a *Node never changes.
//   - Whoever needs the settings of a topic calls Node.Topic with the topic's overrides.
//   - DescribeConfigs is answered from Node.DescribeTopic and its brothers, AlterConfigs and
//     IncrementalAlterConfigs are checked by ValidateTopic, ValidateBroker and so on, after Alter
//     has turned the operations into the map that would be stored.
//
// # Layers
//
// A broker setting comes from the first of: the node's own dynamic config, the dynamic default of
// all brokers, the file (with environment and flags), the built-in default. Some settings have
// synonyms (log.retention.ms > log.retention.minutes > log.retention.hours): a layer is asked for
// all of them before the next layer is. A topic setting has the topic's own override above that.
package config
