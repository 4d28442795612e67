package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.SharedStateRegistryImpl;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.Rows;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Windows that are read and cleared key by key, with anything else in between. */
class FiringWindowTest {
    private static final int KEYS = 4_000;

    @TempDir Path local;

    private AbstractKeyedStateBackend<Integer> backend;
    private InternalListState<Integer, TimeWindow, Long> state;

    /** What must be there, by window and key. */
    private final Map<Long, Map<Integer, List<Long>>> expected = new TreeMap<>();

    private final Random random = new Random(5);
    private final SharedStateRegistryImpl registry = new SharedStateRegistryImpl();

    @SuppressWarnings("unchecked")
    private void open(KeyedStateHandle... restored) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
        backend =
                Backends.open(
                        new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()),
                        restored);
        state =
                (InternalListState<Integer, TimeWindow, Long>)
                        (Object)
                                backend.getPartitionedState(
                                        window(0),
                                        new TimeWindow.Serializer(),
                                        new ListStateDescriptor<>("all", LongSerializer.INSTANCE));
    }

    @AfterEach
    void close() {
        if (backend != null) {
            backend.dispose();
        }
    }

    private static TimeWindow window(long number) {
        return new TimeWindow(number * 1000, number * 1000 + 1000);
    }

    private void at(int key, long window) {
        backend.setCurrentKey(key);
        state.setCurrentNamespace(window(window));
    }

    private void add(int key, long window, long value) throws Exception {
        at(key, window);
        state.add(value);
        expected.computeIfAbsent(window, none -> new TreeMap<>())
                .computeIfAbsent(key, none -> new ArrayList<>())
                .add(value);
    }

    private void read(int key, long window) throws Exception {
        at(key, window);
        List<Long> wanted = expected.getOrDefault(window, Map.of()).get(key);
        Iterable<Long> found = state.get();
        assertEquals(wanted, found == null ? null : Objects.requireNonNull(found), key + " in " + window);
    }

    private void clear(int key, long window) {
        at(key, window);
        state.clear();
        expected.getOrDefault(window, Map.of()).remove(key);
    }

    /** Its keys, as the timers come: key group by key group. */
    private List<Integer> inOrderOfFiring(long window) {
        List<Integer> keys = new ArrayList<>(expected.getOrDefault(window, Map.of()).keySet());
        Collections.shuffle(keys, random);
        keys.sort(
                (a, b) -> {
                    backend.setCurrentKey(a);
                    int groupOfA = backend.getCurrentKeyGroupIndex();
                    backend.setCurrentKey(b);
                    return Integer.compare(groupOfA, backend.getCurrentKeyGroupIndex());
                });
        return keys;
    }

    private void checkAll() throws Exception {
        List<String> wanted = new ArrayList<>();
        expected.forEach(
                (window, keys) -> keys.keySet().forEach(key -> wanted.add(key + " " + window(window))));
        try (Stream<Tuple2<Integer, TimeWindow>> found = backend.getKeysAndNamespaces("all")) {
            assertEquals(
                    wanted.stream().sorted().collect(Collectors.toList()),
                    found.map(both -> both.f0 + " " + both.f1).sorted().collect(Collectors.toList()));
        }
        for (Map.Entry<Long, Map<Integer, List<Long>>> window : expected.entrySet()) {
            try (Stream<Integer> keys = backend.getKeys("all", window(window.getKey()))) {
                assertEquals(
                        new ArrayList<>(window.getValue().keySet()), keys.sorted().collect(Collectors.toList()));
            }
        }
    }

    private void fill(long window, int keys) throws Exception {
        for (int at = 0; at < keys; at++) {
            add(random.nextInt(KEYS), window, at);
        }
    }

    @Test
    void aWindowThatFiresIsOneRangeDeleteForEachKeyGroup() throws Exception {
        int groups = 5;
        int rows = 500;
        try (FoldDb db = FoldDb.create(local.resolve("store"), new Options().memoryBytes(8 << 20))) {
            WriteBuffer writes = new WriteBuffer(db);
            StateTable table =
                    new StateTable(
                            db.createTable("windows", StateTable.rulesOf(null, "NONE")),
                            writes,
                            new RegisteredKeyValueStateBackendMetaInfo<>(
                                    StateDescriptor.Type.VALUE,
                                    "windows",
                                    new TimeWindow.Serializer(),
                                    LongSerializer.INSTANCE),
                            RowOrder.NAMESPACE_FIRST,
                            1);
            for (int at = 0; at < groups * rows; at++) {
                table.put(row(at, 7, groups), new byte[] {1, (byte) at});
                table.put(row(at, 8, groups), new byte[] {2});
            }
            writes.flush();
            long before = db.lastSeq();
            for (int group = 0; group < groups; group++) {
                for (int at = group; at < groups * rows; at += groups) {
                    byte[] row = row(at, 7, groups);
                    assertArrayEquals(new byte[] {1, (byte) at}, table.get(row));
                    table.delete(row);
                    assertNull(table.get(row), "it is gone at once");
                }
            }
            writes.flush();
            long written = db.lastSeq() - before;
            assertTrue(written <= groups * 16, written + " writes deleted " + groups * rows + " rows");
            try (Rows left = table.rows(false)) {
                for (int at = 0; at < groups * rows; at++) {
                    assertTrue(left.next());
                    assertArrayEquals(new byte[] {2}, left.value());
                }
                assertFalse(left.next());
            }
        }
    }

    private static byte[] row(int key, long window, int groups) {
        RowKeys<Integer> keys = new RowKeys<>(IntSerializer.INSTANCE, 1);
        keys.setKey(key, key % groups);
        return keys.of(RowOrder.NAMESPACE_FIRST, window(window), new TimeWindow.Serializer());
    }

    @Test
    void anythingMayComeWhileAWindowFires() throws Exception {
        open();
        for (long round = 1; round < 12; round++) {
            fill(round, 3_000);
            fill(round + 1, 1_000);
            int checkpoint = random.nextInt(1_000);
            for (int key : inOrderOfFiring(round)) {
                read(key, round);
                if (random.nextInt(400) != 0) {
                    clear(key, round);
                }
                disturb(round, random.nextInt(2_000));
                if (checkpoint-- == 0) {
                    restart(round);
                }
            }
            checkAll();
        }
    }

    private void disturb(long round, int what) throws Exception {
        int key = random.nextInt(KEYS);
        if (what < 2) {
            add(key, round, what);
        } else if (what < 4) {
            read(key, round);
        } else if (what < 6) {
            clear(key, round);
        } else if (what < 8) {
            read(key, round + 1);
        } else if (what < 10) {
            add(key, round + 1, what);
        } else if (what == 10) {
            checkAll();
        }
    }

    private void restart(long id) throws Exception {
        IncrementalRemoteKeyedStateHandle handle =
                Backends.incremental(backend, id, CheckpointType.CHECKPOINT);
        handle.registerSharedStates(registry, id);
        backend.dispose();
        open(handle);
    }
}
