/** A job of Apache Flink with its state in FoldDB: windows over the flights of the samples. */
package org.folddb.flink.example;
