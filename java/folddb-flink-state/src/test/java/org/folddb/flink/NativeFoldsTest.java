package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.queryablestate.client.state.serialization.KvStateSerializer;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.SavepointResources;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.runtime.state.internal.InternalAggregatingState;
import org.apache.flink.util.StateMigrationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Aggregating states of folds: native over FoldDB, and the same wherever a savepoint takes them. */
class NativeFoldsTest {
    private static final int KEYS = 100;

    @TempDir Path local;

    private FoldDbStateBackend folddb() {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
        return new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
    }

    /** Every function, of whole numbers. */
    private static List<FoldAggregate<Long, ?>> functions() {
        return List.of(
                FoldAggregates.count(),
                FoldAggregates.sum(n -> n),
                FoldAggregates.min(n -> n),
                FoldAggregates.max(n -> n),
                FoldAggregates.sumDouble(n -> n * 1e300),
                FoldAggregates.minDouble(n -> n / 3.0),
                FoldAggregates.maxDouble(n -> n / 3.0),
                FoldAggregates.stats(n -> n / 3.0),
                FoldAggregates.hll(5, n -> n % 10 == 0 ? null : n),
                FoldAggregates.quantiles(n -> n % 10 == 0 ? Double.NaN : n, 0.5, 0.9),
                FoldAggregates.topK(3, n -> n, n -> n % 10 == 0 ? null : "m" + n % 7),
                FoldAggregates.topKDouble(3, n -> n / 3.0, n -> "m" + n % 7));
    }

    private static <OUT> AggregatingStateDescriptor<Long, FoldValue, OUT> descriptor(
            String name, FoldAggregate<Long, OUT> function) {
        return new AggregatingStateDescriptor<>(name, function, FoldValueSerializer.INSTANCE);
    }

    /** A state with whole numbers as its namespaces. */
    @SuppressWarnings("unchecked")
    private static <OUT> InternalAggregatingState<Integer, Integer, Long, FoldValue, OUT> state(
            AbstractKeyedStateBackend<Integer> backend,
            AggregatingStateDescriptor<Long, FoldValue, OUT> descriptor,
            int namespace)
            throws Exception {
        return (InternalAggregatingState<Integer, Integer, Long, FoldValue, OUT>)
                backend.getPartitionedState(namespace, IntSerializer.INSTANCE, descriptor);
    }

    private static <OUT> InternalAggregatingState<Integer, Integer, Long, FoldValue, OUT> state(
            AbstractKeyedStateBackend<Integer> backend, FoldAggregate<Long, OUT> function, int namespace)
            throws Exception {
        return state(backend, descriptor(function.spec(), function), namespace);
    }

    /** Adds, clears and merges, at random but everywhere the same. */
    private static void write(AbstractKeyedStateBackend<Integer> backend, int seed) throws Exception {
        for (FoldAggregate<Long, ?> function : functions()) {
            Random random = new Random(seed);
            for (int step = 0; step < 2_000; step++) {
                int key = random.nextInt(KEYS);
                int namespace = random.nextInt(4);
                long number = random.nextInt(1_000);
                int action = random.nextInt(100);
                if (!isOf(backend, key)) {
                    continue;
                }
                backend.setCurrentKey(key);
                if (action == 0) {
                    state(backend, function, namespace).clear();
                } else if (action == 1) {
                    List<Integer> sources = new ArrayList<>(List.of(0, 1, 2, 3));
                    sources.remove(Integer.valueOf(namespace));
                    state(backend, function, namespace).mergeNamespaces(namespace, sources);
                } else {
                    state(backend, function, namespace).add(number);
                }
            }
        }
    }

    private static boolean isOf(AbstractKeyedStateBackend<Integer> backend, int key) {
        int group = KeyGroupRangeAssignment.assignToKeyGroup(key, backend.getNumberOfKeyGroups());
        return backend.getKeyGroupRange().contains(group);
    }

    /** Every result, as text. */
    private static String contents(Collection<AbstractKeyedStateBackend<Integer>> backends) throws Exception {
        StringBuilder text = new StringBuilder();
        for (FoldAggregate<Long, ?> function : functions()) {
            for (int key = 0; key < KEYS; key++) {
                for (AbstractKeyedStateBackend<Integer> backend : backends) {
                    if (!isOf(backend, key)) {
                        continue;
                    }
                    backend.setCurrentKey(key);
                    for (int namespace = 0; namespace < 4; namespace++) {
                        Object result = state(backend, function, namespace).get();
                        Object shown =
                                result instanceof double[]
                                        ? Arrays.toString((double[]) result)
                                        : result instanceof Object[]
                                                ? Arrays.toString((Object[]) result)
                                                : result;
                        text.append(function.spec() + " " + key + " " + namespace + " " + shown + "\n");
                    }
                }
            }
        }
        return text.toString();
    }

    private static void assertNative(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        for (FoldAggregate<Long, ?> function : functions()) {
            Object state = state(backend, function, 0);
            assertTrue(state instanceof NativeFold, function.spec());
            assertEquals(function.spec(), ((NativeFold<?, ?, ?, ?>) state).table.spec());
        }
    }

    @Test
    void everyFunctionGivesWhatItGivesOverTheHeap() throws Exception {
        AbstractKeyedStateBackend<Integer> heap = Backends.open(new HashMapStateBackend());
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb());
        assertNative(backend);
        write(heap, 3);
        write(backend, 3);
        String expected = contents(List.of(heap));
        assertTrue(expected.lines().filter(line -> !line.endsWith(" null")).count() > 4_000, expected);
        assertEquals(expected, contents(List.of(backend)));
        heap.dispose();
        backend.dispose();
    }

    @Test
    void aMillionAddsAreOneValue() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb());
        FoldAggregate<Long, Long> sum = FoldAggregates.sum(n -> n);
        InternalAggregatingState<Integer, Integer, Long, FoldValue, Long> state = state(backend, sum, 0);
        StateTable table = ((NativeFold<?, ?, ?, ?>) (Object) state).table;
        backend.setCurrentKey(1);
        for (long number = 1; number <= 1_000_000; number++) {
            state.add(number);
        }
        byte[] row = ((NativeFold<?, ?, ?, ?>) (Object) state).rowKey();
        assertEquals(8, table.get(row).length);
        assertEquals(500_000_500_000L, state.get());
        table.table().compact();
        assertEquals(1, table.table().stats().get("records"), "no operand is kept");
        backend.dispose();
    }

    @Test
    void aSavepointMovesToTheHeapAndBack() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb());
        write(backend, 5);
        String expected = contents(List.of(backend));
        KeyedStateHandle savepoint = Backends.savepoint(backend);
        AbstractKeyedStateBackend<Integer> heap = Backends.open(new HashMapStateBackend(), savepoint);
        assertEquals(expected, contents(List.of(heap)));
        AbstractKeyedStateBackend<Integer> again =
                Backends.open(folddb(), Backends.savepoint(heap));
        // A savepoint before the job has asked for the states: they have no function yet.
        KeyedStateHandle unasked = Backends.savepoint(again);
        assertNative(again);
        assertEquals(expected, contents(List.of(again)));
        assertEquals(backend.numKeyValueStateEntries(), again.numKeyValueStateEntries());
        write(heap, 6);
        write(again, 6);
        assertEquals(contents(List.of(heap)), contents(List.of(again)), "it goes on");
        AbstractKeyedStateBackend<Integer> restored = Backends.open(folddb(), unasked);
        assertEquals(expected, contents(List.of(restored)));
        for (AbstractKeyedStateBackend<Integer> each : List.of(backend, heap, again, restored)) {
            each.dispose();
        }
    }

    @Test
    void aSnapshotOutlivesThatItsRowsMoveToAnotherTable() throws Exception {
        AbstractKeyedStateBackend<Integer> heap = Backends.open(new HashMapStateBackend());
        write(heap, 7);
        String expected = contents(List.of(heap));
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb(), Backends.savepoint(heap));
        SavepointResources<Integer> before = backend.savepoint();
        assertNative(backend);
        SavepointResources<Integer> after = backend.savepoint();
        write(backend, 8);
        for (SavepointResources<Integer> each : List.of(before, after)) {
            AbstractKeyedStateBackend<Integer> restored = Backends.open(folddb(), Backends.write(each));
            assertEquals(expected, contents(List.of(restored)));
            restored.dispose();
        }
        heap.dispose();
        backend.dispose();
    }

    /** A number of the task that has asked: the one with the most key groups, the other, or neither. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, -1})
    void parallelismChangesWhereOneTaskHasAskedForTheStates(int asked) throws Exception {
        AbstractKeyedStateBackend<Integer> heap = Backends.open(new HashMapStateBackend());
        write(heap, 9);
        KeyedStateHandle savepoint = Backends.savepoint(heap);
        List<KeyedStateHandle> taken = new ArrayList<>();
        List<KeyGroupRange> ranges = List.of(KeyGroupRange.of(0, 80), KeyGroupRange.of(81, 127));
        for (int task = 0; task < 2; task++) {
            KeyGroupRange range = ranges.get(task);
            AbstractKeyedStateBackend<Integer> backend =
                    Backends.open(folddb(), range, List.of(savepoint.getIntersection(range)));
            if (task == asked) {
                assertNative(backend);
            }
            taken.add(Backends.incremental(backend, 1, CheckpointType.FULL_CHECKPOINT));
            backend.dispose();
        }
        AbstractKeyedStateBackend<Integer> joined =
                Backends.open(folddb(), KeyGroupRange.of(0, 127), taken);
        assertNative(joined);
        assertEquals(contents(List.of(heap)), contents(List.of(joined)));
        write(heap, 10);
        write(joined, 10);
        String expected = contents(List.of(heap));
        assertEquals(expected, contents(List.of(joined)));
        KeyedStateHandle whole = Backends.incremental(joined, 2, CheckpointType.FULL_CHECKPOINT);
        List<AbstractKeyedStateBackend<Integer>> split = new ArrayList<>();
        for (KeyGroupRange range : ranges) {
            split.add(Backends.open(folddb(), range, List.of(whole)));
        }
        assertEquals(expected, contents(split));
        for (AbstractKeyedStateBackend<Integer> each : List.of(heap, joined, split.get(0), split.get(1))) {
            each.dispose();
        }
    }

    @Test
    void anotherFoldIsRefused() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb());
        backend.setCurrentKey(1);
        state(backend, descriptor("it", FoldAggregates.<Long>sum(n -> n)), 0).add(5L);
        KeyedStateHandle handle = Backends.incremental(backend, 1, CheckpointType.CHECKPOINT);
        backend.dispose();
        AbstractKeyedStateBackend<Integer> restored = Backends.open(folddb(), handle);
        restored.setCurrentKey(1);
        AggregatingStateDescriptor<Long, FoldValue, Long> other =
                descriptor("it", FoldAggregates.<Long>max(n -> n));
        Exception refused = assertThrows(StateMigrationException.class, () -> state(restored, other, 0));
        assertTrue(refused.getMessage().contains("sum:i64") && refused.getMessage().contains("max:i64"));
        assertEquals(5L, state(restored, descriptor("it", FoldAggregates.<Long>sum(n -> n)), 0).get());
        restored.dispose();
    }

    /** With a time to live the values have times beside them, and are folded in Java. */
    @Test
    void aTimeToLiveComesAndGoes() throws Exception {
        FoldAggregate<Long, Long> sum = FoldAggregates.sum(n -> n);
        List<KeyedStateHandle> handles = List.of();
        for (int round = 0; round < 4; round++) {
            AbstractKeyedStateBackend<Integer> backend =
                    Backends.open(folddb(), KeyGroupRange.of(0, 127), handles);
            AggregatingStateDescriptor<Long, FoldValue, Long> descriptor = descriptor("it", sum);
            if (round % 2 == 1) {
                descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(1)).build());
            }
            InternalAggregatingState<Integer, Integer, Long, FoldValue, Long> state =
                    state(backend, descriptor, 0);
            assertEquals(round % 2 == 0, state instanceof NativeFold, "round " + round);
            for (int key = 0; key < KEYS; key++) {
                backend.setCurrentKey(key);
                assertEquals(round == 0 ? null : Long.valueOf(round * (2L * key + 1)), state.get());
                state.add((long) key);
                state.add(key + 1L);
            }
            assertEquals(KEYS, backend.numKeyValueStateEntries());
            handles = List.of(Backends.incremental(backend, round + 1, CheckpointType.FULL_CHECKPOINT));
            backend.dispose();
        }
    }

    @Test
    void aQueryReadsAnAccumulator() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = Backends.open(folddb());
        FoldAggregate<Long, Long> sum = FoldAggregates.sum(n -> n);
        InternalAggregatingState<Integer, Integer, Long, FoldValue, Long> state = state(backend, sum, 3);
        backend.setCurrentKey(1);
        state.add(5L);
        state.add(6L);
        byte[] key =
                KvStateSerializer.serializeKeyAndNamespace(
                        1, IntSerializer.INSTANCE, 3, IntSerializer.INSTANCE);
        byte[] answer =
                state.getSerializedValue(
                        key, IntSerializer.INSTANCE, IntSerializer.INSTANCE, FoldValueSerializer.INSTANCE);
        FoldValue found = KvStateSerializer.deserializeValue(answer, FoldValueSerializer.INSTANCE);
        assertEquals(11L, sum.getResult(found));
        FoldValue internal = state.getInternal();
        assertNotNull(internal);
        state.clear();
        assertNull(state.get());
        state.updateInternal(internal);
        assertEquals(11L, state.get());
        state.updateInternal(sum.createAccumulator());
        assertNull(state.get(), "nothing is no sum");
        assertNull(
                state.getSerializedValue(
                        key, IntSerializer.INSTANCE, IntSerializer.INSTANCE, FoldValueSerializer.INSTANCE));
        backend.dispose();
    }
}
