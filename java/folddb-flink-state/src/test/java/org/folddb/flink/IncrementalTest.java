package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyGroupedInternalPriorityQueue;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.PlaceholderStreamStateHandle;
import org.apache.flink.runtime.state.SharedStateRegistryImpl;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.apache.flink.runtime.state.internal.InternalReducingState;
import org.apache.flink.runtime.state.internal.InternalValueState;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;
import org.apache.flink.streaming.api.operators.TimerSerializer;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Incremental checkpoints: what they share, and that each is all of the state. */
class IncrementalTest {
    private static final int KEYS = 500;

    @TempDir Path local;

    private final SharedStateRegistryImpl registry = new SharedStateRegistryImpl();

    /** How many files the last complete checkpoint has from an earlier one. */
    private long shared;

    private FoldDbStateBackend backend() {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
        return new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
    }

    private AbstractKeyedStateBackend<Integer> open(KeyedStateHandle... restored) throws Exception {
        return Backends.open(backend(), restored);
    }

    /** A checkpoint that completes, as the job manager then knows it. */
    private IncrementalRemoteKeyedStateHandle complete(AbstractKeyedStateBackend<Integer> backend, long id)
            throws Exception {
        IncrementalRemoteKeyedStateHandle handle =
                Backends.incremental(backend, id, CheckpointType.CHECKPOINT);
        shared = placeholders(handle); // which the registry replaces
        handle.registerSharedStates(registry, id);
        backend.notifyCheckpointComplete(id);
        return handle;
    }

    @SuppressWarnings("unchecked")
    private static <S extends State, T> T state(
            AbstractKeyedStateBackend<Integer> backend, StateDescriptor<S, ?> descriptor) throws Exception {
        return (T)
                backend.getPartitionedState(
                        VoidNamespace.INSTANCE, VoidNamespaceSerializer.INSTANCE, descriptor);
    }

    /** States of a backend, and what they must hold. */
    private static final class Job {
        final Map<Integer, String> calls = new HashMap<>();
        final Map<Integer, Long> values = new HashMap<>();
        final Map<Integer, List<Long>> lists = new HashMap<>();
        final Set<List<Long>> timers = new TreeSet<>(Comparator.comparing(List::toString));
        private final Random random = new Random(11);
        private final Map<
                        AbstractKeyedStateBackend<Integer>,
                        KeyGroupedInternalPriorityQueue<TimerHeapInternalTimer<Integer, VoidNamespace>>>
                queues = new IdentityHashMap<>();

        private InternalReducingState<Integer, VoidNamespace, String> callsOf(
                AbstractKeyedStateBackend<Integer> backend) throws Exception {
            return state(
                    backend,
                    new ReducingStateDescriptor<>(
                            "calls", (a, b) -> "(" + a + b + ")", StringSerializer.INSTANCE));
        }

        private InternalValueState<Integer, VoidNamespace, Long> valuesOf(
                AbstractKeyedStateBackend<Integer> backend) throws Exception {
            return state(backend, new ValueStateDescriptor<>("values", LongSerializer.INSTANCE));
        }

        private KeyGroupedInternalPriorityQueue<TimerHeapInternalTimer<Integer, VoidNamespace>> timersOf(
                AbstractKeyedStateBackend<Integer> backend) {
            return queues.computeIfAbsent(
                    backend,
                    none ->
                            backend.create(
                                    "timers",
                                    new TimerSerializer<>(
                                            IntSerializer.INSTANCE, VoidNamespaceSerializer.INSTANCE)));
        }

        private InternalListState<Integer, VoidNamespace, Long> listsOf(
                AbstractKeyedStateBackend<Integer> backend) throws Exception {
            return state(backend, new ListStateDescriptor<>("lists", LongSerializer.INSTANCE));
        }

        /** Writes to keys of the backends' ranges. */
        void write(int writes, Collection<AbstractKeyedStateBackend<Integer>> backends) throws Exception {
            for (int step = 0; step < writes; step++) {
                int key = random.nextInt(KEYS);
                AbstractKeyedStateBackend<Integer> backend = of(key, backends);
                backend.setCurrentKey(key);
                String call = Integer.toString(step % 10);
                callsOf(backend).add(call);
                calls.merge(key, call, (a, b) -> "(" + a + b + ")");
                valuesOf(backend).update((long) step);
                values.put(key, (long) step);
                listsOf(backend).add((long) step);
                lists.computeIfAbsent(key, none -> new ArrayList<>()).add((long) step);
                timersOf(backend).add(new TimerHeapInternalTimer<>(step, key, VoidNamespace.INSTANCE));
                timers.add(List.of((long) step, (long) key));
                if (step % 50 == 0) {
                    listsOf(backend).clear();
                    lists.remove(key);
                }
            }
        }

        void check(Collection<AbstractKeyedStateBackend<Integer>> backends) throws Exception {
            for (int key = 0; key < KEYS; key++) {
                AbstractKeyedStateBackend<Integer> backend = of(key, backends);
                backend.setCurrentKey(key);
                assertEquals(calls.get(key), callsOf(backend).get());
                assertEquals(values.get(key), valuesOf(backend).value());
                Iterable<Long> list = listsOf(backend).get();
                List<Long> elements = new ArrayList<>();
                if (list != null) {
                    list.forEach(elements::add);
                }
                assertEquals(lists.getOrDefault(key, List.of()), elements);
            }
            int entries = 0;
            Set<List<Long>> found = new TreeSet<>(Comparator.comparing(List::toString));
            for (AbstractKeyedStateBackend<Integer> backend : backends) {
                entries += backend.numKeyValueStateEntries();
                CloseableIterator<TimerHeapInternalTimer<Integer, VoidNamespace>> all =
                        timersOf(backend).iterator();
                while (all.hasNext()) {
                    TimerHeapInternalTimer<Integer, VoidNamespace> timer = all.next();
                    assertTrue(found.add(List.of(timer.getTimestamp(), (long) timer.getKey())));
                }
                all.close();
            }
            assertEquals(timers, found);
            assertEquals(calls.size() + values.size() + lists.size(), entries, "and there are no others");
        }

        private static AbstractKeyedStateBackend<Integer> of(
                int key, Collection<AbstractKeyedStateBackend<Integer>> backends) {
            int group = KeyGroupRangeAssignment.assignToKeyGroup(key, backends.iterator().next().getNumberOfKeyGroups());
            for (AbstractKeyedStateBackend<Integer> backend : backends) {
                if (backend.getKeyGroupRange().contains(group)) {
                    return backend;
                }
            }
            throw new AssertionError("no backend has the key group " + group);
        }
    }

    private static Set<String> names(List<HandleAndLocalPath> files) {
        Set<String> names = new HashSet<>();
        files.forEach(file -> names.add(file.getLocalPath()));
        return names;
    }

    private static long placeholders(IncrementalRemoteKeyedStateHandle handle) {
        return handle.getSharedState().stream()
                .filter(file -> file.getHandle() instanceof PlaceholderStreamStateHandle)
                .count();
    }

    /** What is in the local directory beside the stores of running backends. */
    private void assertNoLeftovers(int running) {
        String[] there = local.toFile().list();
        assertEquals(running, there.length, String.join(", ", there));
    }

    /** Checkpoints until merges have ended, after which one sends no file of the store. */
    private IncrementalRemoteKeyedStateHandle settle(AbstractKeyedStateBackend<Integer> backend, long from)
            throws Exception {
        for (long id = from; id < from + 500; id++) {
            IncrementalRemoteKeyedStateHandle handle = complete(backend, id);
            if (shared == handle.getSharedState().size()) {
                return handle;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("each checkpoint has sent files");
    }

    @Test
    void filesOfTheLastCompleteCheckpointAreNotSentAgain() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open();
        Job job = new Job();
        job.write(5_000, List.of(backend));
        IncrementalRemoteKeyedStateHandle first = complete(backend, 1);
        assertEquals(first.getStateSize(), first.getCheckpointedSize(), "all of it is new");
        IncrementalRemoteKeyedStateHandle settled = settle(backend, 2);
        assertTrue(settled.getSharedState().size() > 0);
        job.write(10, List.of(backend));
        IncrementalRemoteKeyedStateHandle aborted =
                Backends.incremental(backend, 1_000, CheckpointType.CHECKPOINT);
        backend.notifyCheckpointAborted(1_000);
        IncrementalRemoteKeyedStateHandle second =
                Backends.incremental(backend, 1_001, CheckpointType.CHECKPOINT);
        Set<String> before = names(settled.getSharedState());
        for (HandleAndLocalPath file : second.getSharedState()) {
            boolean isKnown = file.getHandle() instanceof PlaceholderStreamStateHandle;
            assertEquals(isKnown, before.contains(file.getLocalPath()), "not of the aborted one: " + file);
        }
        aborted.discardState();
        second.registerSharedStates(registry, 1_001);
        backend.notifyCheckpointComplete(1_001);
        assertNoLeftovers(1);
        backend.dispose();
        assertNoLeftovers(0);
        AbstractKeyedStateBackend<Integer> restored = open(second);
        job.check(List.of(restored));
        restored.dispose();
        assertNoLeftovers(0);
    }

    @Test
    void aRestoredBackendGoesOnToShareFiles() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open();
        Job job = new Job();
        for (int round = 1; round <= 4; round++) {
            job.write(2_000, List.of(backend));
            IncrementalRemoteKeyedStateHandle last = settle(backend, round * 1_000);
            backend.dispose();
            backend = open(last);
            IncrementalRemoteKeyedStateHandle after = complete(backend, round * 1_000 + 999);
            assertEquals(last.getBackendIdentifier(), after.getBackendIdentifier());
            assertTrue(shared > 0, after.toString());
            job.check(List.of(backend));
        }
        backend.dispose();
    }

    @Test
    void fullCheckpointsAndNativeSavepointsShareNothing() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open();
        Job job = new Job();
        job.write(3_000, List.of(backend));
        complete(backend, 1);
        IncrementalRemoteKeyedStateHandle full =
                Backends.incremental(backend, 2, CheckpointType.FULL_CHECKPOINT);
        IncrementalRemoteKeyedStateHandle savepoint =
                Backends.incremental(backend, 3, SavepointType.savepoint(SavepointFormatType.NATIVE));
        assertEquals(0, placeholders(full) + placeholders(savepoint));
        backend.dispose();
        for (IncrementalRemoteKeyedStateHandle handle : List.of(full, savepoint)) {
            AbstractKeyedStateBackend<Integer> restored = open(handle);
            job.check(List.of(restored));
            restored.dispose();
        }
    }

    /** The option is about checkpoints: it does not change what a native savepoint is. */
    @Test
    void nativeSavepointsAreFilesOfTheStoreWithoutIncrementalCheckpointsToo() throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, false);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
        FoldDbStateBackend full =
                new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
        AbstractKeyedStateBackend<Integer> backend = Backends.open(full);
        Job job = new Job();
        job.write(3_000, List.of(backend));
        IncrementalRemoteKeyedStateHandle savepoint =
                Backends.incremental(backend, 1, SavepointType.savepoint(SavepointFormatType.NATIVE));
        assertEquals(0, placeholders(savepoint));
        backend.dispose();
        AbstractKeyedStateBackend<Integer> restored = Backends.open(full, savepoint);
        job.check(List.of(restored));
        job.write(1_000, List.of(restored));
        KeyedStateHandle checkpoint = Backends.checkpoint(restored);
        assertTrue(checkpoint instanceof KeyGroupsStateHandle, checkpoint.toString());
        restored.dispose();
        AbstractKeyedStateBackend<Integer> again = open(checkpoint);
        job.check(List.of(again));
        again.dispose();
        assertNoLeftovers(0);
    }

    /** The number of a key group takes one byte or two. */
    @ParameterizedTest
    @ValueSource(ints = {128, 1_000})
    void parallelismChangesUpAndDown(int keyGroups) throws Exception {
        Job job = new Job();
        List<AbstractKeyedStateBackend<Integer>> backends =
                List.of(Backends.open(backend(), keyGroups, KeyGroupRange.of(0, keyGroups - 1), List.of()));
        long id = 0;
        for (int parallelism : List.of(3, 2, 5, 1, 2)) {
            job.write(2_000, backends);
            id++;
            List<KeyedStateHandle> handles = new ArrayList<>();
            for (AbstractKeyedStateBackend<Integer> backend : backends) {
                handles.add(complete(backend, id));
                backend.dispose();
            }
            backends = new ArrayList<>();
            for (int at = 0; at < parallelism; at++) {
                KeyGroupRange range =
                        KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(keyGroups, parallelism, at);
                List<KeyedStateHandle> ours = new ArrayList<>();
                for (KeyedStateHandle handle : handles) {
                    if (handle.getKeyGroupRange().getIntersection(range).getNumberOfKeyGroups() > 0) {
                        ours.add(handle);
                    }
                }
                backends.add(Backends.open(backend(), keyGroups, range, ours));
            }
            job.check(backends);
            assertNoLeftovers(parallelism);
        }
        for (AbstractKeyedStateBackend<Integer> backend : backends) {
            backend.dispose();
        }
    }

    @Test
    void aCanonicalSavepointNeedsTheFunctionsOfRestoredStates() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open();
        Job job = new Job();
        job.write(2_000, List.of(backend));
        IncrementalRemoteKeyedStateHandle handle = complete(backend, 1);
        backend.dispose();
        AbstractKeyedStateBackend<Integer> restored = open(handle);
        // In the thread that writes it: the savepoint fails, and not the task.
        Exception refused = assertThrows(ExecutionException.class, () -> Backends.savepoint(restored));
        String said = String.valueOf(refused.getCause());
        assertTrue(said.contains("calls") && said.contains("native savepoint"), said);
        job.check(List.of(restored));
        KeyedStateHandle savepoint = Backends.savepoint(restored);
        restored.dispose();
        AbstractKeyedStateBackend<Integer> again = open(savepoint);
        job.check(List.of(again));
        again.dispose();
    }

    @Test
    void aDamagedCheckpointIsRefusedAndLeavesNothing() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open();
        new Job().write(2_000, List.of(backend));
        IncrementalRemoteKeyedStateHandle handle = complete(backend, 1);
        backend.dispose();
        List<HandleAndLocalPath> fewer = new ArrayList<>(handle.getSharedState());
        HandleAndLocalPath missing = fewer.remove(0);
        IncrementalRemoteKeyedStateHandle damaged =
                new IncrementalRemoteKeyedStateHandle(
                        handle.getBackendIdentifier(),
                        handle.getKeyGroupRange(),
                        1,
                        fewer,
                        handle.getPrivateState(),
                        handle.getMetaDataStateHandle());
        Exception refused = assertThrows(Exception.class, () -> open(damaged));
        assertTrue(String.valueOf(refused.getCause()).contains(missing.getLocalPath()), refused.toString());
        assertNoLeftovers(0);
    }
}
