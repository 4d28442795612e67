/**
 * FoldDB as the keyed state of Apache Flink: {@link
 * org.folddb.flink.FoldDbStateBackendFactory} is what {@code state.backend.type} names.
 */
package org.folddb.flink;
