// Package wire asks a running node raw questions and checks every field of the answer. With SAMSA_JUDGE=kafka
// the same questions go to Apache Kafka, whose answers are the right ones: a test says where samsa differs
// on purpose.
//
// Kind: driver.
package wire
