package org.folddb.flink;

import java.util.Map;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;
import org.folddb.FoldDb;
import org.folddb.FoldDbException;
import org.folddb.SharedMemory;

/**
 * The figures of a store as gauges of its operator, {@code folddb.GROUP.NAME}. Reporters ask in
 * threads of their own, also while the store is being closed; then they get the last figures.
 */
final class StoreMetrics {
    static final String GROUP = "folddb";

    private static final long AGE_MAX_NS = 1_000_000_000;

    private final FoldDb db;

    /** All gauges that are asked within this time are of one moment. */
    private final long ageMaxNs;

    private Map<String, Double> figures;
    private long readAt;

    private StoreMetrics(FoldDb db, long ageMaxNs) {
        this.db = db;
        this.ageMaxNs = ageMaxNs;
        this.figures = db.stats();
        this.readAt = System.nanoTime();
    }

    /** Adds the gauges of a store, and of the memory that it shares, if that is not null. */
    static void register(MetricGroup operator, FoldDb db, SharedMemory shared) {
        register(operator, db, shared, AGE_MAX_NS);
    }

    static void register(MetricGroup operator, FoldDb db, SharedMemory shared, long ageMaxNs) {
        StoreMetrics metrics = new StoreMetrics(db, ageMaxNs);
        MetricGroup group = operator.addGroup(GROUP);
        for (String name : metrics.figures.keySet()) {
            int dot = name.indexOf('.');
            MetricGroup inner = dot < 0 ? group : group.addGroup(name.substring(0, dot));
            inner.gauge(name.substring(dot + 1), (Gauge<Double>) () -> metrics.figure(name));
        }
        if (shared != null) {
            group.addGroup("memory").gauge("shared_bytes", new SharedBytes(shared));
        }
    }

    private synchronized double figure(String name) {
        if (System.nanoTime() - readAt > ageMaxNs) {
            try {
                figures = db.stats();
            } catch (FoldDbException closed) {
                // It stays as it was.
            }
            readAt = System.nanoTime();
        }
        return figures.getOrDefault(name, 0.0);
    }

    /** What memtables and caches of all stores of a slot hold. */
    private static final class SharedBytes implements Gauge<Double> {
        private final SharedMemory shared;

        SharedBytes(SharedMemory shared) {
            this.shared = shared;
        }

        @Override
        public Double getValue() {
            try {
                return (double) shared.usedBytes();
            } catch (FoldDbException closed) {
                return 0.0;
            }
        }
    }
}
