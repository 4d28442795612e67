package org.folddb.flink;

import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.folddb.BackupFile;

/**
 * The immutable files that checkpoints have uploaded. Only those of a checkpoint that is known to be
 * complete are used again: what another one has uploaded may be discarded.
 */
final class UploadedFiles {
    private final TreeMap<Long, Map<BackupFile, StreamStateHandle>> byCheckpoint = new TreeMap<>();
    private long completed = -1;

    /** The files of the last complete checkpoint. */
    synchronized Map<BackupFile, StreamStateHandle> ofLastCompleted() {
        return byCheckpoint.getOrDefault(completed, Map.of());
    }

    /** A checkpoint has these files, which it uploaded or had from an earlier one. */
    synchronized void add(long checkpoint, Map<BackupFile, StreamStateHandle> files) {
        byCheckpoint.put(checkpoint, files);
    }

    synchronized void complete(long checkpoint) {
        if (checkpoint > completed && byCheckpoint.containsKey(checkpoint)) {
            byCheckpoint.headMap(checkpoint).clear();
            completed = checkpoint;
        }
    }

    synchronized void abort(long checkpoint) {
        if (checkpoint != completed) {
            byCheckpoint.remove(checkpoint);
        }
    }
}
