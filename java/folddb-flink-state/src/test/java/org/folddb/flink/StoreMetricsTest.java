package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.SharedMemory;
import org.folddb.Table;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The gauges of a store, as a reporter would ask them. */
class StoreMetricsTest {
    /** A group that keeps its gauges, and those of the groups in it. */
    private static final class Kept extends UnregisteredMetricsGroup {
        private final String scope;
        private final Map<String, Gauge<?>> gauges;

        Kept(String scope, Map<String, Gauge<?>> gauges) {
            this.scope = scope;
            this.gauges = gauges;
        }

        @Override
        public MetricGroup addGroup(String name) {
            return new Kept(scope + name + ".", gauges);
        }

        @Override
        public <T, G extends Gauge<T>> G gauge(String name, G gauge) {
            gauges.put(scope + name, gauge);
            return gauge;
        }
    }

    private final Map<String, Gauge<?>> gauges = new TreeMap<>();

    private AbstractKeyedStateBackend<Integer> open(FoldDbStateBackend backend) throws Exception {
        return Backends.open(backend, 128, KeyGroupRange.of(0, 127), List.of(), new Kept("", gauges));
    }

    private double figure(String name) {
        assertTrue(gauges.containsKey(name), name + " is not among " + gauges.keySet());
        return (Double) gauges.get(name).getValue();
    }

    @Test
    void gaugesGoWithTheStoreAndOutliveIt(@TempDir Path folder) {
        SharedMemory memory = new SharedMemory(8 << 20);
        FoldDb db = FoldDb.create(folder.resolve("store"), new Options().shared(memory));
        StoreMetrics.register(new Kept("", gauges), db, memory, 0);
        Table table = db.table("t", "fold=sum:i64");
        for (int writes = 1; writes <= 3; writes++) {
            table.fold(new byte[] {1}, new byte[8]);
            assertEquals(writes, figure("folddb.writes.records"));
        }
        assertEquals(db.lastSeq(), figure("folddb.last_seq"));
        db.close();
        memory.close();
        assertEquals(3, figure("folddb.writes.records"), "a reporter may ask later");
        assertEquals(0, figure("folddb.memory.shared_bytes"));
    }

    @Test
    @SuppressWarnings("unchecked")
    void anOperatorHasTheGaugesOfItsStore() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open(new FoldDbStateBackend());
        InternalListState<Integer, VoidNamespace, Long> list =
                (InternalListState<Integer, VoidNamespace, Long>)
                        backend.getPartitionedState(
                                VoidNamespace.INSTANCE,
                                VoidNamespaceSerializer.INSTANCE,
                                new ListStateDescriptor<>("list", LongSerializer.INSTANCE));
        for (int key = 0; key < 20_000; key++) {
            backend.setCurrentKey(key);
            list.add(1L);
        }
        list.get();
        while (figure("folddb.writes.records") < 20_000) {
            Thread.sleep(50); // figures are of the same second
        }
        assertEquals(20_000, figure("folddb.writes.records"));
        assertTrue(figure("folddb.memory.memtable_bytes") > 0);
        assertTrue(figure("folddb.memory.shared_bytes") > 0);
        assertTrue(gauges.size() > 30, gauges.keySet().toString());
        backend.dispose();
    }

    @Test
    void withoutSharedMemoryThereIsNoGaugeOfIt() throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(FoldDbOptions.MANAGED_MEMORY, false);
        open(new FoldDbStateBackend().configure(configuration, getClass().getClassLoader())).dispose();
        assertTrue(gauges.containsKey("folddb.disk.bytes"));
        assertFalse(gauges.containsKey("folddb.memory.shared_bytes"));
    }
}
