package org.folddb.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyExtractorFunction;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.Keyed;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.PriorityComparable;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.RegisteredPriorityQueueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateSerializerProvider;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueElement;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSet;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSetFactory;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.state.restore.FullSnapshotRestoreOperation;
import org.apache.flink.runtime.state.restore.KeyGroup;
import org.apache.flink.runtime.state.restore.KeyGroupEntry;
import org.apache.flink.runtime.state.restore.SavepointRestoreResult;
import org.apache.flink.runtime.state.restore.ThrowingIterator;
import org.apache.flink.util.StateMigrationException;

/** Puts the rows of full snapshots and savepoints, of this backend or another, into a store. */
final class FullRestore<K> {
    private final FoldDbKeyedStateBackend.Opened opened;
    private final KeyGroupRange keyGroups;
    private final int numberOfKeyGroups;
    private final FullSnapshotRestoreOperation<K> handles;
    private final HeapPriorityQueueSetFactory queueFactory;

    FullRestore(
            FoldDbKeyedStateBackend.Opened opened,
            KeyGroupRange keyGroups,
            int numberOfKeyGroups,
            ClassLoader userCodeClassLoader,
            Collection<KeyedStateHandle> restored,
            StateSerializerProvider<K> keySerializers) {
        this.opened = opened;
        this.keyGroups = keyGroups;
        this.numberOfKeyGroups = numberOfKeyGroups;
        this.handles =
                new FullSnapshotRestoreOperation<>(
                        keyGroups, userCodeClassLoader, restored, keySerializers);
        this.queueFactory = new HeapPriorityQueueSetFactory(keyGroups, numberOfKeyGroups, 128);
    }

    void restore() throws IOException, StateMigrationException {
        try (ThrowingIterator<SavepointRestoreResult> snapshots = handles.restore()) {
            while (snapshots.hasNext()) {
                restoreOne(snapshots.next());
            }
        }
        opened.writes.flush();
    }

    /** Takes the rows of one state. */
    private interface Target {
        void take(KeyGroupEntry row) throws IOException;
    }

    private void restoreOne(SavepointRestoreResult snapshot)
            throws IOException, StateMigrationException {
        List<Target> targets = new ArrayList<>();
        for (StateMetaInfoSnapshot meta : snapshot.getStateMetaInfoSnapshots()) {
            targets.add(
                    meta.getBackendStateType() == StateMetaInfoSnapshot.BackendStateType.PRIORITY_QUEUE
                            ? intoQueue(meta)
                            : intoTable(meta));
        }
        try (ThrowingIterator<KeyGroup> groups = snapshot.getRestoredKeyGroups()) {
            while (groups.hasNext()) {
                try (ThrowingIterator<KeyGroupEntry> rows = groups.next().getKeyGroupEntries()) {
                    while (rows.hasNext()) {
                        KeyGroupEntry row = rows.next();
                        targets.get(row.getKvStateId()).take(row);
                    }
                }
            }
        }
    }

    private Target intoTable(StateMetaInfoSnapshot meta) {
        StateTable known = opened.tables.get(meta.getName());
        StateTable table =
                known != null
                        ? known
                        : opened.create(
                                (RegisteredKeyValueStateBackendMetaInfo<?, ?>)
                                        RegisteredKeyValueStateBackendMetaInfo.fromMetaInfoSnapshot(meta));
        return row -> table.put(row.getKey(), row.getValue());
    }

    private Target intoQueue(StateMetaInfoSnapshot meta) {
        HeapPriorityQueueSnapshotRestoreWrapper<?> known = opened.queues.get(meta.getName());
        HeapPriorityQueueSnapshotRestoreWrapper<?> queue =
                known != null
                        ? known
                        : newQueue(new RegisteredPriorityQueueStateBackendMetaInfo<>(meta));
        opened.queues.put(meta.getName(), queue);
        return intoQueue(queue);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private <T extends HeapPriorityQueueElement & PriorityComparable<? super T> & Keyed<?>>
            HeapPriorityQueueSnapshotRestoreWrapper<T> newQueue(
                    RegisteredPriorityQueueStateBackendMetaInfo meta) {
        HeapPriorityQueueSet<T> queue = queueFactory.create(meta.getName(), meta.getElementSerializer());
        return new HeapPriorityQueueSnapshotRestoreWrapper<>(
                queue, meta, KeyExtractorFunction.forKeyedObjects(), keyGroups, numberOfKeyGroups);
    }

    private <T extends HeapPriorityQueueElement> Target intoQueue(
            HeapPriorityQueueSnapshotRestoreWrapper<T> queue) {
        TypeSerializer<T> serializer = queue.getMetaInfo().getElementSerializer();
        DataInputDeserializer in = new DataInputDeserializer();
        int groupBytes =
                CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(numberOfKeyGroups);
        return row -> {
            in.setBuffer(row.getKey());
            in.skipBytesToRead(groupBytes);
            queue.getPriorityQueue().add(serializer.deserialize(in));
        };
    }
}
