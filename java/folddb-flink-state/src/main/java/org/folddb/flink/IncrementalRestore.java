package org.folddb.flink;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.runtime.state.AbstractIncrementalStateHandle;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalLocalKeyedStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateSerializerProvider;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.util.FileUtils;
import org.apache.flink.util.StateMigrationException;
import org.folddb.BackupFile;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.Rows;
import org.folddb.Table;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a store of incremental checkpoints.
 *
 * <pre>
 *   the one with the most of our key groups    its files become the store; other groups are deleted
 *   any others, after a change of parallelism  rows of our groups are copied
 *   timers                                     those of our groups, of all
 * </pre>
 */
final class IncrementalRestore<K> {
    private static final Logger LOG = LoggerFactory.getLogger(IncrementalRestore.class);

    /** The least that a store can have. */
    private static final long READING_BYTES = 4 << 20;

    private final File directory;
    private final Options options;
    private final KeyGroupRange keyGroups;
    private final int numberOfKeyGroups;
    private final int keyGroupBytes;
    private final ClassLoader userCodeClassLoader;
    private final StateSerializerProvider<K> keySerializers;
    private final CloseableRegistry registry;
    private final List<AbstractIncrementalStateHandle> handles = new ArrayList<>();
    private boolean isKeySerializerChecked;

    /** The immutable files of the first handle. */
    private final Map<BackupFile, StreamStateHandle> immutable = new HashMap<>();

    /** Whether there are incremental checkpoints among these. */
    static boolean isFor(Collection<KeyedStateHandle> handles) {
        return handles.stream().anyMatch(AbstractIncrementalStateHandle.class::isInstance);
    }

    IncrementalRestore(
            File directory,
            Options options,
            KeyGroupRange keyGroups,
            int numberOfKeyGroups,
            ClassLoader userCodeClassLoader,
            Collection<KeyedStateHandle> restored,
            StateSerializerProvider<K> keySerializers,
            CloseableRegistry registry)
            throws IOException {
        this.directory = directory;
        this.options = options;
        this.keyGroups = keyGroups;
        this.numberOfKeyGroups = numberOfKeyGroups;
        this.keyGroupBytes =
                CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(numberOfKeyGroups);
        this.userCodeClassLoader = userCodeClassLoader;
        this.keySerializers = keySerializers;
        this.registry = registry;
        for (KeyedStateHandle handle : restored) {
            if (!(handle instanceof IncrementalRemoteKeyedStateHandle)
                    && !(handle instanceof IncrementalLocalKeyedStateHandle)) {
                throw new IOException(
                        "an incremental checkpoint cannot be restored together with " + handle);
            }
            handles.add((AbstractIncrementalStateHandle) handle);
        }
        handles.sort(Comparator.comparingInt(handle -> -countOfOurs(handle)));
    }

    private int countOfOurs(KeyedStateHandle handle) {
        return handle.getKeyGroupRange().getIntersection(keyGroups).getNumberOfKeyGroups();
    }

    /** Makes the store of the files of the first handle, and opens it. */
    FoldDb open() throws IOException {
        AbstractIncrementalStateHandle first = handles.get(0);
        LOG.info("The FoldDB store {} is restored from {}.", directory, first);
        Path backup = backupOf(first);
        try {
            for (BackupFile file : FoldDb.backupFiles(backup)) {
                for (HandleAndLocalPath shared : first.getSharedStateHandles()) {
                    if (shared.getLocalPath().equals(file.name())) {
                        immutable.put(file, shared.getHandle());
                    }
                }
            }
            FoldDb.restore(backup, directory.toPath(), options);
        } finally {
            removeIfDownloaded(first, backup);
        }
        return FoldDb.open(directory.toPath(), options);
    }

    /** Puts states and timers into what is open, and makes it hold our key groups and no others. */
    void fill(FoldDbKeyedStateBackend.Opened opened) throws IOException, StateMigrationException {
        AbstractIncrementalStateHandle first = handles.get(0);
        for (RestoredTable table : readMetadata(first, opened)) {
            opened.adopt(opened.db.table(table.name), table.meta, table.order).hasOperands =
                    table.hasOperands;
        }
        if (handles.size() == 1 && first.getKeyGroupRange().equals(keyGroups)) {
            opened.backendId = first.getBackendIdentifier();
            opened.uploaded.add(first.getCheckpointId(), immutable);
            opened.uploaded.complete(first.getCheckpointId());
            return;
        }
        KeyGroupRange present = first.getKeyGroupRange();
        for (StateTable table : opened.tables.values()) {
            deleteGroups(table, present.getStartKeyGroup(), keyGroups.getStartKeyGroup());
            deleteGroups(table, keyGroups.getEndKeyGroup() + 1, present.getEndKeyGroup() + 1);
        }
        for (AbstractIncrementalStateHandle handle : handles.subList(1, handles.size())) {
            if (countOfOurs(handle) > 0) {
                copyRows(handle, opened);
            }
        }
        opened.writes.flush();
    }

    private void deleteGroups(StateTable table, int from, int before) {
        if (from < before) {
            table.table().deleteRange(beginOf(from), beginOf(before));
        }
    }

    /** Where the keys of a key group begin. */
    private byte[] beginOf(int group) {
        byte[] begin = new byte[keyGroupBytes];
        for (int at = keyGroupBytes - 1, rest = group; at >= 0; at--, rest >>= 8) {
            begin[at] = (byte) rest;
        }
        return begin;
    }

    private void copyRows(
            AbstractIncrementalStateHandle handle, FoldDbKeyedStateBackend.Opened opened)
            throws IOException, StateMigrationException {
        KeyGroupRange range = handle.getKeyGroupRange().getIntersection(keyGroups);
        Path backup = backupOf(handle);
        Path store = Path.of(directory + "_store_" + UUID.randomUUID());
        try {
            FoldDb.restore(backup, store, sparing());
            copyRows(store, handle, range, opened);
        } finally {
            removeIfDownloaded(handle, backup);
            FileUtils.deleteDirectory(store.toFile());
        }
    }

    /** Settings of a store that is read once, beside the memory of the slot. */
    private static Options sparing() {
        return new Options().memoryBytes(READING_BYTES);
    }

    private void copyRows(
            Path store,
            AbstractIncrementalStateHandle handle,
            KeyGroupRange range,
            FoldDbKeyedStateBackend.Opened opened)
            throws IOException, StateMigrationException {
        try (FoldDb from = FoldDb.openReadOnly(store, sparing())) {
            for (RestoredTable table : readMetadata(handle, opened)) {
                copyRows(from.table(table.name), table, range, opened);
            }
        }
    }

    private void copyRows(
            Table from,
            RestoredTable restored,
            KeyGroupRange range,
            FoldDbKeyedStateBackend.Opened opened)
            throws IOException {
        String spec = StateTable.specOf(from);
        StateTable known = opened.tables.get(restored.meta.getName());
        StateTable to = known != null ? known : opened.create(restored.meta, spec);
        if (to.spec() != null && !to.spec().equals(spec)) {
            Relayout.toOperands(opened.db, to); // one task had the function, and another not yet
        }
        boolean isFramed = spec != null && to.spec() == null;
        to.hasOperands |= restored.hasOperands;
        byte[] begin = beginOf(range.getStartKeyGroup());
        byte[] end = beginOf(range.getEndKeyGroup() + 1);
        RowKeyParts<K> parts =
                new RowKeyParts<>(keySerializers.currentSchemaSerializer(), restored.meta, keyGroupBytes);
        try (Rows rows = from.scan().from(begin).before(end).rows()) {
            while (rows.next()) {
                byte[] key = parts.translated(rows.key(), restored.order, to.order);
                to.put(key, isFramed ? NativeFold.framed(rows.value()) : rows.value());
            }
        }
    }

    /** The backup of a checkpoint: one that has stayed on this machine, or its files, copied here. */
    private Path backupOf(AbstractIncrementalStateHandle handle) throws IOException {
        return handle instanceof IncrementalLocalKeyedStateHandle
                ? ((IncrementalLocalKeyedStateHandle) handle).getDirectoryStateHandle().getDirectory()
                : download((IncrementalRemoteKeyedStateHandle) handle);
    }

    private static void removeIfDownloaded(AbstractIncrementalStateHandle handle, Path backup)
            throws IOException {
        if (handle instanceof IncrementalRemoteKeyedStateHandle) {
            FileUtils.deleteDirectory(backup.toFile());
        }
    }

    /** Copies the files of a checkpoint into a directory of their own. */
    private Path download(IncrementalRemoteKeyedStateHandle handle) throws IOException {
        Path to = Path.of(directory + "_from_" + UUID.randomUUID());
        Files.createDirectories(to);
        try {
            for (HandleAndLocalPath file : handle.getSharedState()) {
                download(file, to);
            }
            for (HandleAndLocalPath file : handle.getPrivateState()) {
                download(file, to);
            }
            return to;
        } catch (Throwable failure) {
            FileUtils.deleteDirectory(to.toFile());
            throw failure;
        }
    }

    private void download(HandleAndLocalPath file, Path directory) throws IOException {
        Path to = directory.resolve(file.getLocalPath()).normalize();
        if (!to.startsWith(directory)) {
            throw new IOException("a checkpoint names the file " + file.getLocalPath());
        }
        Files.createDirectories(to.getParent());
        try (InputStream in = file.getHandle().openInputStream()) {
            registry.registerCloseable(in); // a task that is canceled closes it
            Files.copy(in, to);
            registry.unregisterCloseable(in);
        }
    }

    /** What a checkpoint says of a table. */
    private static final class RestoredTable {
        final RegisteredKeyValueStateBackendMetaInfo<?, ?> meta;
        final String name;
        final boolean hasOperands;
        final RowOrder order;

        RestoredTable(RegisteredKeyValueStateBackendMetaInfo<?, ?> meta, DataInputStream in, int version)
                throws IOException {
            this.meta = meta;
            this.name = in.readUTF();
            this.hasOperands = in.readBoolean();
            this.order = version == 1 ? RowOrder.KEY_FIRST : RowOrder.numbered(in.readByte());
        }
    }

    /** Restores the timers of our key groups; gives the tables. See {@link LocalBackup}. */
    private List<RestoredTable> readMetadata(
            AbstractIncrementalStateHandle handle, FoldDbKeyedStateBackend.Opened opened)
            throws IOException, StateMigrationException {
        TimerRestore timers = new TimerRestore(opened.queues, keyGroups, numberOfKeyGroups);
        List<RestoredTable> tables = new ArrayList<>();
        try (InputStream stream = handle.getMetaDataStateHandle().openInputStream();
                DataInputStream in = new DataInputStream(new BufferedInputStream(stream))) {
            KeyedBackendSerializationProxy<K> proxy =
                    new KeyedBackendSerializationProxy<>(userCodeClassLoader);
            proxy.read(new DataInputViewStreamWrapper(in));
            checkKeySerializer(proxy.getKeySerializerSnapshot());
            int version = in.readInt();
            if (version < 1 || version > LocalBackup.VERSION) {
                throw new IOException("a checkpoint is of version " + version + ", which is not known here");
            }
            for (StateMetaInfoSnapshot meta : proxy.getStateMetaInfoSnapshots()) {
                if (meta.getBackendStateType() == StateMetaInfoSnapshot.BackendStateType.PRIORITY_QUEUE) {
                    readTimers(in, timers.queue(meta));
                } else {
                    tables.add(
                            new RestoredTable(
                                    (RegisteredKeyValueStateBackendMetaInfo<?, ?>)
                                            RegisteredKeyValueStateBackendMetaInfo.fromMetaInfoSnapshot(meta),
                                    in,
                                    version));
                }
            }
        }
        return tables;
    }

    private static void readTimers(DataInputStream in, TimerRestore.Queue queue) throws IOException {
        while (in.readBoolean()) {
            byte[] timer = new byte[in.readInt()];
            in.readFully(timer);
            queue.add(timer);
        }
    }

    private void checkKeySerializer(TypeSerializerSnapshot<K> before) throws StateMigrationException {
        if (isKeySerializerChecked) {
            return;
        }
        TypeSerializer<K> now = keySerializers.currentSchemaSerializer();
        TypeSerializerSchemaCompatibility<K> compatibility =
                keySerializers.setPreviousSerializerSnapshotForRestoredState(before);
        if (compatibility.isCompatibleAfterMigration() || compatibility.isIncompatible()) {
            throw new StateMigrationException(
                    "the new key serializer "
                            + now
                            + " must be compatible with that of the restored state, "
                            + keySerializers.previousSchemaSerializer());
        }
        isKeySerializerChecked = true;
    }
}
