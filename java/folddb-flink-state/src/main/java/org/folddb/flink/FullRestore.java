package org.folddb.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateSerializerProvider;
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
    private final FullSnapshotRestoreOperation<K> handles;
    private final TimerRestore timers;
    private final StateSerializerProvider<K> keySerializers;
    private final int keyGroupBytes;

    FullRestore(
            FoldDbKeyedStateBackend.Opened opened,
            KeyGroupRange keyGroups,
            int numberOfKeyGroups,
            ClassLoader userCodeClassLoader,
            Collection<KeyedStateHandle> restored,
            StateSerializerProvider<K> keySerializers) {
        this.opened = opened;
        this.keySerializers = keySerializers;
        this.keyGroupBytes =
                CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(numberOfKeyGroups);
        this.handles =
                new FullSnapshotRestoreOperation<>(
                        keyGroups, userCodeClassLoader, restored, keySerializers);
        this.timers = new TimerRestore(opened.queues, keyGroups, numberOfKeyGroups);
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
                                        RegisteredKeyValueStateBackendMetaInfo.fromMetaInfoSnapshot(meta),
                                null);
        RowKeyParts<K> parts =
                new RowKeyParts<>(
                        keySerializers.currentSchemaSerializer(), table.meta, keyGroupBytes);
        return row ->
                table.put(
                        parts.translated(row.getKey(), RowOrder.KEY_FIRST, table.order),
                        row.getValue());
    }

    private Target intoQueue(StateMetaInfoSnapshot meta) {
        TimerRestore.Queue queue = timers.queue(meta);
        return row -> queue.add(row.getKey());
    }
}
