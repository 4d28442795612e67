package org.folddb.flink.bench;

import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/** Gives records to the operator, times each call, and takes checkpoints on the way. */
final class Meter {
    private final KeyedOneInputStreamOperatorTestHarness<Long, Tuple2<Long, Long>, Void> harness;
    private final Checkpoints checkpoints;
    private final long checkpointEvery;
    final Latencies calls = new Latencies();
    final Latencies watermarks = new Latencies();
    private long watermarkNanos;
    private long records;
    private long nextCheckpoint;

    Meter(
            KeyedOneInputStreamOperatorTestHarness<Long, Tuple2<Long, Long>, Void> harness,
            Checkpoints checkpoints,
            long checkpointEvery) {
        this.harness = harness;
        this.checkpoints = checkpoints;
        this.checkpointEvery = checkpointEvery;
        nextCheckpoint = checkpointEvery / 2;
    }

    void record(long key, long value, long time) throws Exception {
        Tuple2<Long, Long> record = Tuple2.of(key, value);
        long start = System.nanoTime();
        harness.processElement(record, time);
        calls.add(System.nanoTime() - start);
        records++;
        if (records > nextCheckpoint && checkpoints.areIdle()) {
            checkpoints.begin();
            nextCheckpoint += checkpointEvery;
        }
    }

    void watermark(long time) throws Exception {
        long start = System.nanoTime();
        harness.processWatermark(time);
        long took = System.nanoTime() - start;
        watermarks.add(took);
        watermarkNanos += took;
        harness.getOutput().clear();
    }

    long records() {
        return records;
    }

    double watermarkSeconds() {
        return watermarkNanos / 1e9;
    }
}
