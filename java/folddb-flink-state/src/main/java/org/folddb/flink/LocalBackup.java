package org.folddb.flink;

import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataOutputViewStreamWrapper;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.LocalSnapshotDirectoryProvider;
import org.apache.flink.runtime.state.SnapshotResources;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueStateSnapshot;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.util.FileUtils;
import org.folddb.BackupFile;
import org.folddb.FoldDb;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A backup of the store in a local directory, the timers, and what is known of the states. The thread
 * of the task makes it, and another one sends it away.
 *
 * <p>What is not in the files of the backup is written as
 *
 * <pre>
 *   what Flink writes of key serializer and states     KeyedBackendSerializationProxy
 *   version                                            int, 2
 *   for each table    its name; whether its rows may have several operands; the number of the order
 *                     of their keys, which version 1 does not have: 0
 *   for each timer    true, its length (int), key group and timer
 *   false             after the timers of each queue
 * </pre>
 */
final class LocalBackup<K> implements SnapshotResources {
    private static final Logger LOG = LoggerFactory.getLogger(LocalBackup.class);

    static final int VERSION = 2;

    private final File place;

    /** The local state of the task, which keeps what is here; null where it keeps nothing. */
    private final LocalSnapshotDirectoryProvider localState;

    private final Path directory;
    private final List<BackupFile> files;
    private final List<StateMetaInfoSnapshot> metas = new ArrayList<>();
    private final List<String> tableNames = new ArrayList<>();
    private final List<Boolean> haveOperands = new ArrayList<>();
    private final List<RowOrder> orders = new ArrayList<>();
    private final List<HeapPriorityQueueStateSnapshot<?>> queues = new ArrayList<>();
    private final KeyGroupRange keyGroups;
    private final int keyGroupBytes;
    private final TypeSerializer<K> keySerializer;

    /**
     * Flushes the store, so that the log of the backup is short, and makes the backup: immutable
     * files are links to those of the store.
     *
     * @param place the directory for it, which does not exist yet
     * @param localState not null where a task that is restored on this machine may have the backup
     */
    LocalBackup(
            FoldDb db,
            File place,
            LocalSnapshotDirectoryProvider localState,
            Collection<StateTable> tables,
            Collection<HeapPriorityQueueSnapshotRestoreWrapper<?>> timers,
            KeyGroupRange keyGroups,
            int keyGroupBytes,
            TypeSerializer<K> keySerializer) {
        this.place = place;
        this.localState = localState;
        this.keyGroups = keyGroups;
        this.keyGroupBytes = keyGroupBytes;
        this.keySerializer = keySerializer;
        for (StateTable table : tables) {
            metas.add(table.meta.snapshot());
            tableNames.add(table.table().name());
            haveOperands.add(table.hasOperands);
            orders.add(table.order);
        }
        for (HeapPriorityQueueSnapshotRestoreWrapper<?> queue : timers) {
            metas.add(queue.getMetaInfo().snapshot());
            queues.add(queue.stateSnapshot());
        }
        if (metas.isEmpty()) {
            directory = null;
            files = List.of();
            return;
        }
        try {
            db.flush();
            directory = db.backup(place.toPath());
            files = FoldDb.backupFiles(directory);
        } catch (Throwable failure) {
            release();
            throw failure;
        }
    }

    boolean isEmpty() {
        return metas.isEmpty();
    }

    List<BackupFile> files() {
        return files;
    }

    Path path(BackupFile file) {
        return directory.resolve(file.name());
    }

    /** Whether the task keeps it on this machine. */
    boolean isForLocalState() {
        return localState != null;
    }

    /** Where what {@link #writeMetadata} writes is on this machine. */
    Path metadataFile() {
        return place.toPath().resolve("metadata");
    }

    /** Moves the backup, and what is written of it, to where the local state of the task has them. */
    void keep() throws IOException {
        try {
            Files.move(directory, keptDirectory());
            Files.move(metadataFile(), keptMetadataFile());
        } catch (Throwable failure) {
            FileUtils.deleteDirectoryQuietly(keptDirectory().toFile());
            throw failure;
        }
    }

    Path keptDirectory() {
        return Path.of(place + "_backup");
    }

    Path keptMetadataFile() {
        return Path.of(place + "_metadata");
    }

    void writeMetadata(OutputStream to) throws IOException {
        // The stream belongs to the checkpoint, which closes it.
        DataOutputStream out = new DataOutputStream(to);
        new KeyedBackendSerializationProxy<>(keySerializer, metas, false)
                .write(new DataOutputViewStreamWrapper(out));
        out.writeInt(VERSION);
        for (int at = 0; at < tableNames.size(); at++) {
            out.writeUTF(tableNames.get(at));
            out.writeBoolean(haveOperands.get(at));
            out.writeByte(orders.get(at).number());
        }
        for (HeapPriorityQueueStateSnapshot<?> queue : queues) {
            SnapshotRows timers = SnapshotRows.ofQueue(0, queue, keyGroups, keyGroupBytes);
            while (timers.next()) {
                out.writeBoolean(true);
                out.writeInt(timers.key.length);
                out.write(timers.key);
            }
            out.writeBoolean(false);
        }
        out.flush();
    }

    @Override
    public void release() {
        try {
            FileUtils.deleteDirectory(place);
        } catch (IOException | UncheckedIOException failure) {
            LOG.warn("The directory {} of a checkpoint cannot be removed.", place, failure);
        }
    }
}
