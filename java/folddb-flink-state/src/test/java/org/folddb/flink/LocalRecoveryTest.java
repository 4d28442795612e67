package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.IncrementalLocalKeyedStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.LocalSnapshotDirectoryProviderImpl;
import org.apache.flink.runtime.state.PlaceholderStreamStateHandle;
import org.apache.flink.runtime.state.SharedStateRegistryImpl;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.TestTaskStateManager;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A task that is restored where it ran uses the checkpoint that has stayed there. */
class LocalRecoveryTest {
    private static final int KEYS = 500;

    @TempDir Path folder;

    private Path localState() {
        return folder.resolve("local-state");
    }

    private AbstractKeyedStateBackend<Integer> open(boolean isIncremental, KeyedStateHandle... restored)
            throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, isIncremental);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, folder.resolve("stores").toString());
        FoldDbStateBackend backend =
                new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
        LocalRecoveryConfig recovery =
                LocalRecoveryConfig.backupAndRecoveryEnabled(
                        new LocalSnapshotDirectoryProviderImpl(
                                new File[] {localState().toFile()}, new JobID(), new JobVertexID(), 0));
        TestTaskStateManager manager =
                TestTaskStateManager.builder().setLocalRecoveryConfig(recovery).build();
        return Backends.open(
                backend,
                128,
                KeyGroupRange.of(0, 127),
                List.of(restored),
                new UnregisteredMetricsGroup(),
                MockEnvironment.builder().setTaskStateManager(manager).build());
    }

    @SuppressWarnings("unchecked")
    private static InternalListState<Integer, VoidNamespace, Long> list(
            AbstractKeyedStateBackend<Integer> backend) throws Exception {
        return (InternalListState<Integer, VoidNamespace, Long>)
                backend.getPartitionedState(
                        VoidNamespace.INSTANCE,
                        VoidNamespaceSerializer.INSTANCE,
                        new ListStateDescriptor<>("list", LongSerializer.INSTANCE));
    }

    private static void add(AbstractKeyedStateBackend<Integer> backend, long number) throws Exception {
        for (int key = 0; key < KEYS; key++) {
            backend.setCurrentKey(key);
            list(backend).add(number);
        }
    }

    private static void check(AbstractKeyedStateBackend<Integer> backend, List<Long> expected)
            throws Exception {
        for (int key = 0; key < KEYS; key++) {
            backend.setCurrentKey(key);
            assertEquals(expected, list(backend).getInternal());
        }
    }

    private List<Path> filesOf(Path directory) throws Exception {
        if (!Files.exists(directory)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(directory)) {
            return all.filter(Files::isRegularFile).collect(Collectors.toList());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aTaskIsRestoredFromWhatHasStayed(boolean isIncremental) throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open(isIncremental);
        add(backend, 1);
        SnapshotResult<KeyedStateHandle> first = Backends.withLocalState(backend, 1, CheckpointType.CHECKPOINT);
        backend.notifyCheckpointComplete(1);
        backend.dispose();
        assertEquals(List.of(), filesOf(folder.resolve("stores")));
        first.getJobManagerOwnedSnapshot().discardState(); // so that nothing else is left of it
        AbstractKeyedStateBackend<Integer> restored = open(isIncremental, first.getTaskLocalSnapshot());
        check(restored, List.of(1L));
        add(restored, 2);
        restored.dispose();
        // It is as it was, for another failure.
        AbstractKeyedStateBackend<Integer> again = open(isIncremental, first.getTaskLocalSnapshot());
        check(again, List.of(1L));
        again.dispose();
        first.getTaskLocalSnapshot().discardState();
        assertEquals(List.of(), filesOf(folder));
    }

    @Test
    void whatIsRestoredSoGoesOnToShareFilesOfTheCheckpoint() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open(true);
        add(backend, 1);
        SharedStateRegistryImpl registry = new SharedStateRegistryImpl();
        SnapshotResult<KeyedStateHandle> first = Backends.withLocalState(backend, 1, CheckpointType.CHECKPOINT);
        ((IncrementalRemoteKeyedStateHandle) first.getJobManagerOwnedSnapshot()).registerSharedStates(registry, 1);
        backend.dispose();
        AbstractKeyedStateBackend<Integer> restored = open(true, first.getTaskLocalSnapshot());
        IncrementalRemoteKeyedStateHandle second =
                (IncrementalRemoteKeyedStateHandle)
                        Backends.withLocalState(restored, 2, CheckpointType.CHECKPOINT)
                                .getJobManagerOwnedSnapshot();
        assertTrue(
                second.getSharedState().stream()
                        .anyMatch(file -> file.getHandle() instanceof PlaceholderStreamStateHandle));
        second.registerSharedStates(registry, 2);
        restored.dispose();
        AbstractKeyedStateBackend<Integer> elsewhere = open(true, second);
        check(elsewhere, List.of(1L));
        elsewhere.dispose();
    }

    @Test
    void whatIsDamagedIsRefusedSoThatTheCheckpointIsUsed() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open(true);
        add(backend, 1);
        SnapshotResult<KeyedStateHandle> taken = Backends.withLocalState(backend, 1, CheckpointType.CHECKPOINT);
        backend.dispose();
        IncrementalLocalKeyedStateHandle local =
                (IncrementalLocalKeyedStateHandle) taken.getTaskLocalSnapshot();
        List<Path> files = filesOf(local.getDirectoryStateHandle().getDirectory());
        assertFalse(files.isEmpty());
        Files.delete(files.get(files.size() - 1));
        assertThrows(Exception.class, () -> open(true, local));
        assertEquals(List.of(), filesOf(folder.resolve("stores")));
        AbstractKeyedStateBackend<Integer> restored = open(true, taken.getJobManagerOwnedSnapshot());
        check(restored, List.of(1L));
        restored.dispose();
    }

    @Test
    void aSavepointLeavesNothingOnTheMachine() throws Exception {
        AbstractKeyedStateBackend<Integer> backend = open(true);
        add(backend, 1);
        SnapshotResult<KeyedStateHandle> taken =
                Backends.withLocalState(backend, 1, SavepointType.savepoint(SavepointFormatType.NATIVE));
        assertNull(taken.getTaskLocalSnapshot());
        backend.dispose();
        assertEquals(List.of(), filesOf(folder));
    }
}
