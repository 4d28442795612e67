package org.folddb.flink;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.RunnableFuture;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.checkpoint.SavepointType;
import org.apache.flink.runtime.checkpoint.SnapshotType;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.AbstractStateBackend;
import org.apache.flink.runtime.state.CheckpointStorageLocationReference;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.SavepointResources;
import org.apache.flink.runtime.state.SavepointSnapshotStrategy;
import org.apache.flink.runtime.state.SnapshotExecutionType;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.SnapshotStrategyRunner;
import org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;

/** Keyed backends for integers, as a task would make them. */
final class Backends {
    private static final int KEY_GROUPS = 128;

    private Backends() {}

    static AbstractKeyedStateBackend<Integer> open(AbstractStateBackend backend, KeyedStateHandle... restored)
            throws Exception {
        return open(backend, KeyGroupRange.of(0, KEY_GROUPS - 1), List.of(restored));
    }

    static AbstractKeyedStateBackend<Integer> open(
            AbstractStateBackend backend, KeyGroupRange range, Collection<KeyedStateHandle> restored)
            throws Exception {
        return open(backend, KEY_GROUPS, range, restored);
    }

    static AbstractKeyedStateBackend<Integer> open(
            AbstractStateBackend backend,
            int keyGroups,
            KeyGroupRange range,
            Collection<KeyedStateHandle> restored)
            throws Exception {
        return open(backend, keyGroups, range, restored, new UnregisteredMetricsGroup());
    }

    static AbstractKeyedStateBackend<Integer> open(
            AbstractStateBackend backend,
            int keyGroups,
            KeyGroupRange range,
            Collection<KeyedStateHandle> restored,
            MetricGroup metrics)
            throws Exception {
        return open(backend, keyGroups, range, restored, metrics, MockEnvironment.builder().build());
    }

    static AbstractKeyedStateBackend<Integer> open(
            AbstractStateBackend backend,
            int keyGroups,
            KeyGroupRange range,
            Collection<KeyedStateHandle> restored,
            MetricGroup metrics,
            Environment environment)
            throws Exception {
        return backend.createKeyedStateBackend(
                new KeyedStateBackendParametersImpl<>(
                        environment,
                        new JobID(),
                        "operator",
                        IntSerializer.INSTANCE,
                        keyGroups,
                        range,
                        null,
                        TtlTimeProvider.DEFAULT,
                        metrics,
                        (name, value) -> {},
                        restored,
                        new CloseableRegistry(),
                        1.0));
    }

    static KeyedStateHandle savepoint(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        return write(backend.savepoint());
    }

    static KeyedStateHandle write(SavepointResources<Integer> savepoint) throws Exception {
        SnapshotType type = SavepointType.savepoint(SavepointFormatType.CANONICAL);
        return run(
                new SnapshotStrategyRunner<>(
                                "savepoint",
                                new SavepointSnapshotStrategy<>(savepoint.getSnapshotResources()),
                                new CloseableRegistry(),
                                SnapshotExecutionType.ASYNCHRONOUS)
                        .snapshot(1, 1, new MemCheckpointStreamFactory(1 << 24), options(type)));
    }

    static KeyedStateHandle checkpoint(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        return run(
                backend.snapshot(
                        1, 1, new MemCheckpointStreamFactory(1 << 24), options(CheckpointType.CHECKPOINT)));
    }

    /** An incremental checkpoint; its files stay in memory, so that shared ones can be told. */
    static IncrementalRemoteKeyedStateHandle incremental(
            AbstractKeyedStateBackend<Integer> backend, long id, SnapshotType type) throws Exception {
        return (IncrementalRemoteKeyedStateHandle)
                run(backend.snapshot(id, id, new MemCheckpointStreamFactory(1 << 24), options(type)));
    }

    private static CheckpointOptions options(SnapshotType type) {
        return new CheckpointOptions(type, CheckpointStorageLocationReference.getDefault());
    }

    /** A checkpoint, and what of it stays on the machine. */
    static SnapshotResult<KeyedStateHandle> withLocalState(
            AbstractKeyedStateBackend<Integer> backend, long id, SnapshotType type) throws Exception {
        return runWhole(
                backend.snapshot(id, id, new MemCheckpointStreamFactory(1 << 24), options(type)));
    }

    private static KeyedStateHandle run(RunnableFuture<SnapshotResult<KeyedStateHandle>> snapshot)
            throws Exception {
        return runWhole(snapshot).getJobManagerOwnedSnapshot();
    }

    private static SnapshotResult<KeyedStateHandle> runWhole(
            RunnableFuture<SnapshotResult<KeyedStateHandle>> snapshot) throws Exception {
        Thread thread = new Thread(snapshot);
        thread.start();
        thread.join();
        return snapshot.get();
    }
}
