package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.internal.InternalMapState;
import org.apache.flink.runtime.state.internal.InternalReducingState;
import org.apache.flink.runtime.state.internal.InternalValueState;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A checkpoint of version 1, with rows of windows in the order of key and window: files that the
 * release before wrote. It goes on in that order; together with checkpoints in the other, too.
 */
class OldCheckpointTest {
    private static final KeyGroupRange ALL = KeyGroupRange.of(0, 127);
    private static final KeyGroupRange LOW = KeyGroupRange.of(0, 59);
    private static final KeyGroupRange HIGH = KeyGroupRange.of(60, 127);
    private static final int KEYS = 100;

    @TempDir Path local;

    private static KeyedStateHandle old() throws IOException {
        List<HandleAndLocalPath> shared = new ArrayList<>();
        List<HandleAndLocalPath> own = new ArrayList<>();
        StreamStateHandle metadata = null;
        try (InputStream file = OldCheckpointTest.class.getResourceAsStream("checkpoint-version-1.zip");
                ZipInputStream in = new ZipInputStream(file)) {
            for (ZipEntry entry = in.getNextEntry(); entry != null; entry = in.getNextEntry()) {
                StreamStateHandle handle = new ByteStreamStateHandle(entry.getName(), in.readAllBytes());
                int at = entry.getName().indexOf('/');
                if (at < 0) {
                    metadata = handle;
                } else {
                    (entry.getName().startsWith("shared") ? shared : own)
                            .add(HandleAndLocalPath.of(handle, entry.getName().substring(at + 1)));
                }
            }
        }
        return new IncrementalRemoteKeyedStateHandle(
                UUID.randomUUID(), ALL, 1, shared, own, metadata);
    }

    private final class Job implements AutoCloseable {
        final KeyGroupRange range;
        final AbstractKeyedStateBackend<Integer> backend;
        final InternalReducingState<Integer, TimeWindow, String> joined;
        final InternalMapState<Integer, TimeWindow, String, Long> maps;
        final InternalValueState<Integer, VoidNamespace, Long> values;

        Job(KeyGroupRange range, KeyedStateHandle... restored) throws Exception {
            this.range = range;
            Configuration configuration = new Configuration();
            configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
            configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
            backend =
                    Backends.open(
                            new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()),
                            range,
                            List.of(restored));
            TypeSerializer<TimeWindow> windows = new TimeWindow.Serializer();
            joined =
                    state(
                            window(0),
                            windows,
                            new ReducingStateDescriptor<>("joined", (a, b) -> a + b, StringSerializer.INSTANCE));
            maps =
                    state(
                            window(0),
                            windows,
                            new MapStateDescriptor<>("maps", StringSerializer.INSTANCE, LongSerializer.INSTANCE));
            values =
                    state(
                            VoidNamespace.INSTANCE,
                            VoidNamespaceSerializer.INSTANCE,
                            new ValueStateDescriptor<>("values", LongSerializer.INSTANCE));
        }

        @SuppressWarnings("unchecked")
        private <N, T> T state(N namespace, TypeSerializer<N> namespaces, StateDescriptor<?, ?> descriptor)
                throws Exception {
            return (T) backend.getPartitionedState(namespace, namespaces, descriptor);
        }

        /** Whether the key is ours. */
        boolean at(int key, int window) {
            int group = KeyGroupRangeAssignment.assignToKeyGroup(key, ALL.getNumberOfKeyGroups());
            if (!range.contains(group)) {
                return false;
            }
            backend.setCurrentKey(key);
            joined.setCurrentNamespace(window(window));
            maps.setCurrentNamespace(window(window));
            return true;
        }

        /** All of it is there, in windows from this one on. */
        void check(int first) throws Exception {
            List<String> expected = new ArrayList<>();
            for (int key = 0; key < KEYS; key++) {
                for (int window = -1; window < 3; window++) {
                    if (!at(key, window)) {
                        continue;
                    }
                    assertEquals(window < first ? null : "a" + key + "b" + window, joined.get());
                    Map<String, Long> map = new TreeMap<>();
                    maps.entries().forEach(entry -> map.put(entry.getKey(), entry.getValue()));
                    assertEquals(
                            window < first
                                    ? Map.of()
                                    : Map.of("x", (long) key, "y" + window, (long) window),
                            map);
                    assertEquals(key * 10L, values.value());
                    if (window >= first) {
                        expected.add(key + " " + window(window));
                    }
                }
            }
            checkKeys("joined", expected);
            checkKeys("maps", expected);
        }

        private void checkKeys(String state, List<String> expected) {
            try (Stream<Tuple2<Integer, TimeWindow>> found = backend.getKeysAndNamespaces(state)) {
                assertEquals(
                        expected.stream().sorted().collect(Collectors.toList()),
                        found.map(both -> both.f0 + " " + both.f1).sorted().collect(Collectors.toList()));
            }
            try (Stream<Integer> found = backend.getKeys(List.of("joined", "maps"), window(2))) {
                Collection<Integer> keys = found.collect(Collectors.toList());
                assertEquals(Set.copyOf(keys).size(), keys.size());
                assertEquals(
                        expected.stream().filter(row -> row.endsWith(window(2).toString())).count(),
                        keys.size());
            }
        }

        void clear(int window) {
            for (int key = 0; key < KEYS; key++) {
                if (at(key, window)) {
                    joined.clear();
                    maps.clear();
                }
            }
        }

        /** A checkpoint that shares no files, so that nothing need be registered. */
        KeyedStateHandle checkpoint() throws Exception {
            return Backends.incremental(
                    backend, 2, SavepointType.savepoint(SavepointFormatType.NATIVE));
        }

        @Override
        public void close() {
            backend.dispose();
        }
    }

    private static TimeWindow window(int number) {
        return new TimeWindow(number * 1000L, number * 1000L + 1000);
    }

    @Test
    void itGoesOn() throws Exception {
        KeyedStateHandle next;
        try (Job job = new Job(ALL, old())) {
            job.check(-1);
            job.clear(-1);
            job.check(0);
            next = job.checkpoint();
        }
        try (Job job = new Job(ALL, next)) {
            job.check(0);
            job.clear(0);
            job.check(1);
        }
    }

    @Test
    void itIsRescaledTogetherWithCheckpointsInTheOtherOrder() throws Exception {
        KeyedStateHandle canonical;
        try (Job job = new Job(ALL, old())) {
            canonical = Backends.savepoint(job.backend);
        }
        KeyedStateHandle keyFirst;
        try (Job job = new Job(LOW, old())) {
            job.check(-1);
            keyFirst = job.checkpoint();
        }
        KeyedStateHandle windowFirst;
        try (Job job = new Job(HIGH, canonical.getIntersection(HIGH))) {
            job.check(-1);
            windowFirst = job.checkpoint();
        }
        // The one with the most key groups becomes the store, and rows of the other are translated.
        try (Job job = new Job(ALL, keyFirst, windowFirst)) {
            job.check(-1);
        }
        try (Job job = new Job(KeyGroupRange.of(50, 127), keyFirst, windowFirst)) {
            job.check(-1);
        }
        try (Job job = new Job(KeyGroupRange.of(0, 70), keyFirst, windowFirst)) {
            job.check(-1);
            job.clear(-1);
            job.check(0);
        }
    }

    @Test
    void aCanonicalSavepointOfItIsThatOfTheOtherOrder() throws Exception {
        KeyedStateHandle canonical;
        try (Job job = new Job(ALL, old())) {
            canonical = Backends.savepoint(job.backend);
        }
        try (Job job = new Job(ALL, canonical)) {
            job.check(-1);
            canonical = Backends.savepoint(job.backend);
        }
        try (Job job = new Job(ALL, canonical)) {
            job.check(-1);
        }
    }
}
