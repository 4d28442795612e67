/**
 * Measures keyed state of Flink: the same operators and records over FoldDB, RocksDB and the heap,
 * each in a process of its own, with equal results or none.
 */
package org.folddb.flink.bench;
