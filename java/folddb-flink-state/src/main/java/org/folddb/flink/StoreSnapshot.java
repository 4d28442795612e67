package org.folddb.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.runtime.state.FullSnapshotResources;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyValueStateIterator;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateSnapshotTransformer;
import org.apache.flink.runtime.state.StateSnapshotTransformer.StateSnapshotTransformFactory;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueStateSnapshot;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.folddb.FoldDb;
import org.folddb.Snapshot;
import org.folddb.Table;

/**
 * The store, the timers, and what is known of the states, as they were when it was taken. It is
 * taken by the thread of the task, and read by another one.
 */
final class StoreSnapshot<K> implements FullSnapshotResources<K> {
    private final Snapshot snapshot;
    private final List<Table> tables = new ArrayList<>();

    /** What makes canonical keys of those of the rows; null where they are so. */
    private final List<RowTransform> keyTransforms = new ArrayList<>();

    private final List<RowTransform> transforms = new ArrayList<>();
    private final List<HeapPriorityQueueStateSnapshot<?>> queues = new ArrayList<>();
    private final List<StateMetaInfoSnapshot> metas = new ArrayList<>();
    private final KeyGroupRange keyGroups;
    private final int keyGroupBytes;
    private final TypeSerializer<K> keySerializer;
    private final StreamCompressionDecorator compression;

    StoreSnapshot(
            FoldDb db,
            Collection<StateTable> tables,
            Collection<HeapPriorityQueueSnapshotRestoreWrapper<?>> timers,
            KeyGroupRange keyGroups,
            int keyGroupBytes,
            TypeSerializer<K> keySerializer,
            StreamCompressionDecorator compression) {
        this.keyGroups = keyGroups;
        this.keyGroupBytes = keyGroupBytes;
        this.keySerializer = keySerializer;
        this.compression = compression;
        for (StateTable table : tables) {
            this.tables.add(table.table()); // a state may go on with another one
            metas.add(table.meta.snapshot());
            keyTransforms.add(keyTransformOf(table));
            transforms.add(RowTransform.both(foldOf(table), transformOf(table.meta, table.transform)));
        }
        for (HeapPriorityQueueSnapshotRestoreWrapper<?> queue : timers) {
            metas.add(queue.getMetaInfo().snapshot());
            queues.add(queue.stateSnapshot());
        }
        this.snapshot = db.snapshot();
    }

    private RowTransform keyTransformOf(StateTable table) {
        RowOrder order = table.order;
        if (order == RowOrder.KEY_FIRST) {
            return null;
        }
        RowKeyParts<K> parts = new RowKeyParts<>(keySerializer, table.meta, keyGroupBytes);
        return row -> parts.translated(row, order, RowOrder.KEY_FIRST);
    }

    private static RowTransform foldOf(StateTable table) {
        if (table.spec() != null) {
            return NativeFold::framed;
        }
        if (table.state != null) {
            return table.state.foldForSnapshot();
        }
        if (!table.hasOperands) {
            return null;
        }
        String why =
                "the state "
                        + table.meta.getName()
                        + " was restored from an incremental checkpoint, and the job has not asked for"
                        + " it since: its values cannot be combined without its function. Ask for it"
                        + " first, or take an incremental checkpoint or a native savepoint.";
        // For the thread that writes: there the snapshot fails, and here the task would.
        return stored -> {
            throw new IOException(why);
        };
    }

    /** What leaves out values whose time to live is over, if the state asks for that. */
    @SuppressWarnings("unchecked")
    private static <E> RowTransform transformOf(
            RegisteredKeyValueStateBackendMetaInfo<?, ?> meta, StateSnapshotTransformFactory<E> factory) {
        StateDescriptor.Type type = meta.getStateType();
        if (type == StateDescriptor.Type.LIST) {
            Optional<StateSnapshotTransformer<E>> elements = factory.createForDeserializedState();
            ListSerializer<E> lists = (ListSerializer<E>) meta.getStateSerializer().duplicate();
            return elements.map(each -> SnapshotTransforms.ofList(each, lists.getElementSerializer()))
                    .orElse(null);
        }
        Optional<StateSnapshotTransformer<byte[]>> values = factory.createForSerializedState();
        if (type == StateDescriptor.Type.MAP) {
            return values.map(SnapshotTransforms::ofMap).orElse(null);
        }
        return values.<RowTransform>map(each -> each::filterOrTransform).orElse(null);
    }

    @Override
    public KeyValueStateIterator createKVStateIterator() throws IOException {
        List<SnapshotRows> all = new ArrayList<>();
        for (int at = 0; at < tables.size(); at++) {
            all.add(
                    SnapshotRows.ofTable(
                            at,
                            tables.get(at).scan().at(snapshot).rows(),
                            keyTransforms.get(at),
                            transforms.get(at)));
        }
        for (HeapPriorityQueueStateSnapshot<?> queue : queues) {
            all.add(SnapshotRows.ofQueue(all.size(), queue, keyGroups, keyGroupBytes));
        }
        return new MergedRows(all, keyGroupBytes);
    }

    @Override
    public List<StateMetaInfoSnapshot> getMetaInfoSnapshots() {
        return metas;
    }

    @Override
    public KeyGroupRange getKeyGroupRange() {
        return keyGroups;
    }

    @Override
    public TypeSerializer<K> getKeySerializer() {
        return keySerializer;
    }

    @Override
    public StreamCompressionDecorator getStreamCompressionDecorator() {
        return compression;
    }

    @Override
    public void release() {
        snapshot.close();
    }
}
