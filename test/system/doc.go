// Package system tests samsa as an operator meets it: real processes that are killed, files that are
// damaged, ports that get garbage. Kind: driver.
package system
