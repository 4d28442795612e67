package org.folddb.flink;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.annotation.Nonnull;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.SnapshotType.SharingFilesStrategy;
import org.apache.flink.runtime.checkpoint.filemerging.FileMergingSnapshotManager;
import org.apache.flink.runtime.state.CheckpointStateOutputStream;
import org.apache.flink.runtime.state.CheckpointStreamFactory;
import org.apache.flink.runtime.state.CheckpointedStateScope;
import org.apache.flink.runtime.state.DirectoryStateHandle;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalLocalKeyedStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.PlaceholderStreamStateHandle;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.SnapshotStrategy;
import org.apache.flink.runtime.state.StateUtil;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.util.IOUtils;
import org.folddb.BackupFile;

/**
 * Checkpoints that share files: an immutable file of the store that the last complete checkpoint has
 * is not sent again.
 */
final class IncrementalSnapshots<K> implements SnapshotStrategy<KeyedStateHandle, LocalBackup<K>> {
    private final Taking<K> take;
    private final UUID backendId;
    private final KeyGroupRange keyGroups;
    private final UploadedFiles uploaded;

    IncrementalSnapshots(
            Taking<K> take,
            UUID backendId,
            KeyGroupRange keyGroups,
            UploadedFiles uploaded) {
        this.take = take;
        this.backendId = backendId;
        this.keyGroups = keyGroups;
        this.uploaded = uploaded;
    }

    @Override
    public LocalBackup<K> syncPrepareResources(long checkpointId) throws IOException {
        return take.take(checkpointId);
    }

    @Override
    public SnapshotResultSupplier<KeyedStateHandle> asyncSnapshot(
            LocalBackup<K> backup,
            long checkpointId,
            long timestamp,
            @Nonnull CheckpointStreamFactory streams,
            @Nonnull CheckpointOptions options) {
        if (backup.isEmpty()) {
            return registry -> SnapshotResult.empty();
        }
        SharingFilesStrategy sharing = options.getCheckpointType().getSharingFilesStrategy();
        // As of now, in the thread of the task: a later checkpoint may complete meanwhile.
        Map<BackupFile, StreamStateHandle> known =
                sharing == SharingFilesStrategy.FORWARD_BACKWARD ? uploaded.ofLastCompleted() : Map.of();
        return registry -> new Upload(backup, checkpointId, streams, sharing, known, registry).run();
    }

    /** Makes a backup for a checkpoint, in the thread of the task. */
    interface Taking<K> {
        LocalBackup<K> take(long checkpointId) throws IOException;
    }

    /** The sending of one checkpoint. */
    private final class Upload {
        private final LocalBackup<K> backup;
        private final long checkpointId;
        private final CheckpointStreamFactory streams;
        private final SharingFilesStrategy sharing;
        private final Map<BackupFile, StreamStateHandle> known;
        private final CloseableRegistry registry;

        /** What is discarded if it fails. */
        private final List<StreamStateHandle> sent = new ArrayList<>();

        private final List<StreamStateHandle> reused = new ArrayList<>();
        private final Map<BackupFile, StreamStateHandle> immutable = new HashMap<>();
        private final List<HandleAndLocalPath> sharedState = new ArrayList<>();
        private final List<HandleAndLocalPath> privateState = new ArrayList<>();

        Upload(
                LocalBackup<K> backup,
                long checkpointId,
                CheckpointStreamFactory streams,
                SharingFilesStrategy sharing,
                Map<BackupFile, StreamStateHandle> known,
                CloseableRegistry registry) {
            this.backup = backup;
            this.checkpointId = checkpointId;
            this.streams = streams;
            this.sharing = sharing;
            this.known = known;
            this.registry = registry;
        }

        SnapshotResult<KeyedStateHandle> run() throws Exception {
            boolean isWhole = false;
            try {
                StreamStateHandle metadata = send(CheckpointedStateScope.EXCLUSIVE, this::metadata);
                for (BackupFile file : backup.files()) {
                    (file.isImmutable() ? sharedState : privateState)
                            .add(HandleAndLocalPath.of(handleOf(file), file.name()));
                }
                streams.reusePreviousStateHandle(reused);
                long sentBytes = 0;
                for (StreamStateHandle handle : sent) {
                    sentBytes += handle.getStateSize();
                }
                KeyedStateHandle whole =
                        new IncrementalRemoteKeyedStateHandle(
                                backendId, keyGroups, checkpointId, sharedState, privateState, metadata, sentBytes);
                SnapshotResult<KeyedStateHandle> result =
                        backup.isForLocalState()
                                ? SnapshotResult.withLocalState(whole, localHandle())
                                : SnapshotResult.of(whole);
                // Last: what is discarded after a failure must not be there for later checkpoints.
                if (sharing != SharingFilesStrategy.NO_SHARING) {
                    uploaded.add(checkpointId, immutable);
                }
                isWhole = true;
                return result;
            } finally {
                if (!isWhole) {
                    StateUtil.bestEffortDiscardAllStateObjects(sent);
                }
            }
        }

        /** Writes it on this machine first where it stays there. */
        private void metadata(OutputStream out) throws IOException {
            if (!backup.isForLocalState()) {
                backup.writeMetadata(out);
                return;
            }
            try (OutputStream file =
                    new BufferedOutputStream(Files.newOutputStream(backup.metadataFile()))) {
                backup.writeMetadata(file);
            }
            Files.copy(backup.metadataFile(), out);
        }

        /** The backup, and beside it the handles of what later checkpoints may share. */
        private KeyedStateHandle localHandle() throws IOException {
            List<HandleAndLocalPath> shared = new ArrayList<>();
            immutable.forEach((file, handle) -> shared.add(HandleAndLocalPath.of(handle, file.name())));
            backup.keep();
            Path metadata = backup.keptMetadataFile();
            return new IncrementalLocalKeyedStateHandle(
                    backendId,
                    checkpointId,
                    DirectoryStateHandle.forPathWithSize(backup.keptDirectory()),
                    keyGroups,
                    new FileStateHandle(
                            new org.apache.flink.core.fs.Path(metadata.toUri()), Files.size(metadata)),
                    shared);
        }

        private StreamStateHandle handleOf(BackupFile file) throws IOException {
            if (!file.isImmutable()) {
                return send(CheckpointedStateScope.EXCLUSIVE, out -> copy(file, out));
            }
            StreamStateHandle before = known.get(file);
            if (before != null && streams.couldReuseStateHandle(before)) {
                reused.add(before);
                immutable.put(file, before);
                // The registry of shared states puts the handle of the earlier checkpoint there.
                return new PlaceholderStreamStateHandle(
                        before.getStreamStateHandleID(),
                        before.getStateSize(),
                        FileMergingSnapshotManager.isFileMergingHandle(before));
            }
            CheckpointedStateScope scope =
                    sharing == SharingFilesStrategy.NO_SHARING
                            ? CheckpointedStateScope.EXCLUSIVE
                            : CheckpointedStateScope.SHARED;
            StreamStateHandle handle = send(scope, out -> copy(file, out));
            immutable.put(file, handle);
            return handle;
        }

        private void copy(BackupFile file, OutputStream out) throws IOException {
            try (InputStream in = Files.newInputStream(backup.path(file))) {
                long bytes = in.transferTo(out);
                if (bytes != file.length()) {
                    throw new IOException(
                            file + " of the backup for checkpoint " + checkpointId + " has " + bytes + " bytes");
                }
            }
        }

        private StreamStateHandle send(CheckpointedStateScope scope, Content content) throws IOException {
            CheckpointStateOutputStream out = streams.createCheckpointStateOutputStream(scope);
            registry.registerCloseable(out); // a checkpoint that is aborted closes it
            StreamStateHandle handle = null;
            try {
                content.write(out);
                if (registry.unregisterCloseable(out)) {
                    handle = out.closeAndGetHandle();
                }
            } finally {
                if (handle == null && registry.unregisterCloseable(out)) {
                    IOUtils.closeQuietly(out);
                }
            }
            if (handle == null) {
                throw new IOException("checkpoint " + checkpointId + " was aborted");
            }
            sent.add(handle);
            return handle;
        }
    }

    /** What is written into a stream. */
    private interface Content {
        void write(OutputStream out) throws IOException;
    }
}
