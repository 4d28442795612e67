package org.folddb.flink;

import java.util.function.Supplier;
import javax.annotation.Nonnull;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.state.CheckpointStreamFactory;
import org.apache.flink.runtime.state.CheckpointStreamWithResultProvider;
import org.apache.flink.runtime.state.CheckpointedStateScope;
import org.apache.flink.runtime.state.FullSnapshotAsyncWriter;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.LocalSnapshotDirectoryProvider;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.SnapshotStrategy;

/** Checkpoints that write all of the state, in the format of canonical savepoints. */
final class FullSnapshots<K> implements SnapshotStrategy<KeyedStateHandle, StoreSnapshot<K>> {
    private final Supplier<StoreSnapshot<K>> take;

    /** Where what is sent is written, too; null where it is not. */
    private final LocalSnapshotDirectoryProvider localState;

    FullSnapshots(Supplier<StoreSnapshot<K>> take, LocalSnapshotDirectoryProvider localState) {
        this.take = take;
        this.localState = localState;
    }

    @Override
    public StoreSnapshot<K> syncPrepareResources(long checkpointId) {
        return take.get();
    }

    @Override
    public SnapshotResultSupplier<KeyedStateHandle> asyncSnapshot(
            StoreSnapshot<K> snapshot,
            long checkpointId,
            long timestamp,
            @Nonnull CheckpointStreamFactory streams,
            @Nonnull CheckpointOptions options) {
        if (snapshot.getMetaInfoSnapshots().isEmpty()) {
            return registry -> SnapshotResult.empty();
        }
        return new FullSnapshotAsyncWriter<>(
                options.getCheckpointType(),
                () ->
                        localState == null
                                ? CheckpointStreamWithResultProvider.createSimpleStream(
                                        CheckpointedStateScope.EXCLUSIVE, streams)
                                : CheckpointStreamWithResultProvider.createDuplicatingStream(
                                        checkpointId, CheckpointedStateScope.EXCLUSIVE, streams, localState),
                snapshot);
    }
}
