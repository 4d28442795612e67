package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.SavepointResources;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.runtime.state.internal.InternalAggregatingState;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.apache.flink.runtime.state.internal.InternalMapState;
import org.apache.flink.runtime.state.internal.InternalReducingState;
import org.apache.flink.runtime.state.internal.InternalValueState;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is added blind reads as if it had been combined at once, also by other backends. */
class BlindAddsTest {
    private AbstractKeyedStateBackend<Integer> backend;

    @BeforeEach
    void open() throws Exception {
        backend = Backends.open(new FoldDbStateBackend());
    }

    @AfterEach
    void dispose() {
        backend.dispose();
    }

    @SuppressWarnings("unchecked")
    private static <S extends State, T> T state(
            AbstractKeyedStateBackend<Integer> backend, StateDescriptor<S, ?> descriptor) throws Exception {
        return (T)
                backend.getPartitionedState(
                        VoidNamespace.INSTANCE, VoidNamespaceSerializer.INSTANCE, descriptor);
    }

    /** Neither associative nor commutative: it shows every call in its order. */
    private static ReducingStateDescriptor<String> calls() {
        return new ReducingStateDescriptor<>("calls", (a, b) -> "(" + a + b + ")", StringSerializer.INSTANCE);
    }

    @Test
    void aReducingStateIsCombinedFromTheLeftInOrder() throws Exception {
        InternalReducingState<Integer, VoidNamespace, String> state = state(backend, calls());
        Map<Integer, String> expected = new HashMap<>();
        Random random = new Random(7);
        for (int step = 0; step < 5_000; step++) {
            int key = random.nextInt(20);
            backend.setCurrentKey(key);
            int action = random.nextInt(40);
            if (action == 0) {
                assertEquals(expected.get(key), state.get());
            } else if (action == 1) {
                assertEquals(expected.get(key), state.get());
                state.clear();
                expected.remove(key);
                assertNull(state.get());
            } else {
                String value = Integer.toString(step);
                state.add(value);
                expected.merge(key, value, (a, b) -> "(" + a + b + ")");
            }
        }
        for (int key = 0; key < 20; key++) {
            backend.setCurrentKey(key);
            assertEquals(expected.get(key), state.get());
        }
    }

    @Test
    void aLongRowIsWrittenBackUnlessTheNextCallClearsIt() throws Exception {
        InternalReducingState<Integer, VoidNamespace, String> state = state(backend, calls());
        for (int key = 0; key < 2; key++) {
            backend.setCurrentKey(key);
            for (int number = 0; number < 30; number++) {
                state.add("x");
            }
        }
        StateTable table = ((Reducing<?, ?, ?>) state).table;
        byte[] second = ((Reducing<?, ?, ?>) state).rowKey();
        int before = table.get(second).length;
        String read = state.get();
        assertEquals(before, table.get(second).length, "the result of the read still waits");
        state.add("y");
        assertEquals("(" + read + "y)", state.get());
        state.clear();
        assertNull(state.get());
        backend.setCurrentKey(0);
        assertEquals(read, state.get());
        state.clear();
        assertNull(table.get(((Reducing<?, ?, ?>) state).rowKey()), "it was not written after the clear");
    }

    /** A sum whose merge may be wrong. */
    private static final class Sum implements AggregateFunction<Long, Long, String> {
        private static final long serialVersionUID = 1L;

        private final int kind;

        Sum(int kind) {
            this.kind = kind;
        }

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long value, Long accumulator) {
            return value + accumulator;
        }

        @Override
        public String getResult(Long accumulator) {
            return "sum " + accumulator;
        }

        @Override
        public Long merge(Long a, Long b) {
            switch (kind) {
                case 0:
                    return a + b;
                case 1:
                    return a;
                case 2:
                    return null;
                default:
                    throw new UnsupportedOperationException("no merge");
            }
        }
    }

    private static AggregatingStateDescriptor<Long, Long, String> sum(int kind) {
        return new AggregatingStateDescriptor<>("sum" + kind, new Sum(kind), LongSerializer.INSTANCE);
    }

    @Test
    void anAggregatingStateAddsBlindOnlyIfItsMergeAgreesWithItsAdd() throws Exception {
        for (int kind = 0; kind < 4; kind++) {
            InternalAggregatingState<Integer, VoidNamespace, Long, Long, String> state =
                    state(backend, sum(kind));
            backend.setCurrentKey(1);
            for (long number = 0; number < 100; number++) {
                state.add(number);
            }
            assertEquals("sum 4950", state.get(), "kind " + kind);
            assertEquals(kind == 0, ((Aggregating<?, ?, ?, ?, ?>) state).isBlind(), "kind " + kind);
        }
    }

    private static void fill(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        InternalReducingState<Integer, VoidNamespace, String> calls = state(backend, calls());
        InternalAggregatingState<Integer, VoidNamespace, Long, Long, String> sum = state(backend, sum(0));
        InternalListState<Integer, VoidNamespace, Long> list =
                state(backend, new ListStateDescriptor<>("list", LongSerializer.INSTANCE));
        InternalMapState<Integer, VoidNamespace, String, Long> map =
                state(backend, new MapStateDescriptor<>("map", StringSerializer.INSTANCE, LongSerializer.INSTANCE));
        InternalValueState<Integer, VoidNamespace, String> value =
                state(backend, new ValueStateDescriptor<>("value", StringSerializer.INSTANCE));
        for (int key = 0; key < 300; key++) {
            backend.setCurrentKey(key);
            for (long number = 0; number <= key % 5; number++) {
                calls.add("c" + number);
                sum.add(number);
                list.add(number);
                map.put("m" + number, number);
            }
            value.update("v" + key);
        }
    }

    /** Everything that {@link #fill} has put there, as text. */
    private static String contents(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        InternalReducingState<Integer, VoidNamespace, String> calls = state(backend, calls());
        InternalAggregatingState<Integer, VoidNamespace, Long, Long, String> sum = state(backend, sum(0));
        InternalListState<Integer, VoidNamespace, Long> list =
                state(backend, new ListStateDescriptor<>("list", LongSerializer.INSTANCE));
        InternalMapState<Integer, VoidNamespace, String, Long> map =
                state(backend, new MapStateDescriptor<>("map", StringSerializer.INSTANCE, LongSerializer.INSTANCE));
        InternalValueState<Integer, VoidNamespace, String> value =
                state(backend, new ValueStateDescriptor<>("value", StringSerializer.INSTANCE));
        StringBuilder text = new StringBuilder();
        for (int key = 0; key < 300; key++) {
            int group = KeyGroupRangeAssignment.assignToKeyGroup(key, 128);
            if (!backend.getKeyGroupRange().contains(group)) {
                continue;
            }
            backend.setCurrentKey(key);
            TreeMap<String, Long> entries = new TreeMap<>();
            for (Map.Entry<String, Long> entry : map.entries()) {
                entries.put(entry.getKey(), entry.getValue());
            }
            List<Long> elements = new ArrayList<>();
            list.get().forEach(elements::add);
            text.append(key).append(' ').append(calls.get()).append(' ').append(sum.get()).append(' ');
            text.append(elements).append(' ').append(entries).append(' ').append(value.value()).append('\n');
        }
        return text.toString();
    }

    @Test
    void aSavepointMovesToTheHeapAndBack() throws Exception {
        fill(backend);
        String expected = contents(backend);
        AbstractKeyedStateBackend<Integer> heap =
                Backends.open(new HashMapStateBackend(), Backends.savepoint(backend));
        assertEquals(expected, contents(heap));
        AbstractKeyedStateBackend<Integer> again =
                Backends.open(new FoldDbStateBackend(), Backends.savepoint(heap));
        assertEquals(expected, contents(again));
        assertEquals(backend.numKeyValueStateEntries(), again.numKeyValueStateEntries());
        heap.dispose();
        again.dispose();
    }

    private static List<String> sortedLines(String text) {
        return text.lines().sorted().collect(Collectors.toList());
    }

    @Test
    void aCheckpointIsSplitAndJoined() throws Exception {
        fill(backend);
        String expected = contents(backend);
        KeyGroupsStateHandle whole = (KeyGroupsStateHandle) Backends.checkpoint(backend);
        List<KeyedStateHandle> parts = new ArrayList<>();
        StringBuilder read = new StringBuilder();
        for (KeyGroupRange range : List.of(KeyGroupRange.of(0, 40), KeyGroupRange.of(41, 127))) {
            AbstractKeyedStateBackend<Integer> part =
                    Backends.open(new FoldDbStateBackend(), range, List.of(whole.getIntersection(range)));
            read.append(contents(part));
            parts.add(Backends.checkpoint(part));
            part.dispose();
        }
        assertEquals(sortedLines(expected), sortedLines(read.toString()));
        AbstractKeyedStateBackend<Integer> joined =
                Backends.open(new FoldDbStateBackend(), KeyGroupRange.of(0, 127), parts);
        assertEquals(expected, contents(joined));
        joined.dispose();
    }

    @Test
    void aSnapshotSeesWhatWasThereWhenItWasTaken() throws Exception {
        fill(backend);
        String expected = contents(backend);
        SavepointResources<Integer> snapshot = backend.savepoint();
        InternalReducingState<Integer, VoidNamespace, String> calls = state(backend, calls());
        backend.setCurrentKey(7);
        calls.add("later");
        AbstractKeyedStateBackend<Integer> restored =
                Backends.open(new FoldDbStateBackend(), Backends.write(snapshot));
        assertEquals(expected, contents(restored));
        restored.dispose();
    }

    @Test
    void configurationNamesTheFactory() throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(StateBackendOptions.STATE_BACKEND, FoldDbStateBackendFactory.class.getName());
        configuration.set(FoldDbOptions.AGGREGATING, FoldDbOptions.Adding.READING);
        StateBackend loaded =
                StateBackendLoader.loadStateBackendFromConfig(
                        configuration, getClass().getClassLoader(), null);
        assertTrue(loaded instanceof FoldDbStateBackend);
        assertTrue(loaded.useManagedMemory());
        for (SavepointFormatType format : SavepointFormatType.values()) {
            assertTrue(loaded.supportsSavepointFormat(format), "which a task asks first: " + format);
        }
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, "relative");
        assertThrows(
                IllegalConfigurationException.class,
                () -> new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()));
        assertFalse(loaded.supportsAsyncKeyedStateBackend());
    }
}
