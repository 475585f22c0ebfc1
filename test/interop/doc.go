// Package interop lets strangers use samsa: other people's clients (franz-go, Sarama, librdkafka by kcat
// and confluent-kafka, kafka-python, kafkajs, Kafka's own Java clients) and Apache Kafka's tools, each
// against a running samsa process; and it asks a samsa and an Apache Kafka the same questions and compares
// the answers field by field (docs/conformance/differences.md).
//
// With SAMSA_INTEROP_TARGET=kafka the same tests run against Apache Kafka: that is how one sees that they
// ask for what Kafka does.
//
// Kind: driver.
package interop
