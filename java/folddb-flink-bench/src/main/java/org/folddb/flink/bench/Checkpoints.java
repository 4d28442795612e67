package org.folddb.flink.bench;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.CheckpointStorageLocationReference;
import org.apache.flink.runtime.state.SharedStateRegistryImpl;
import org.apache.flink.runtime.state.filesystem.FsCheckpointStreamFactory;
import org.apache.flink.streaming.api.operators.OperatorSnapshotFinalizer;
import org.apache.flink.streaming.api.operators.OperatorSnapshotFutures;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/**
 * Checkpoints into a local directory, as a task and a job manager make them: the first half in the
 * thread of the operator, the second in another while records go on; then the operator hears that
 * the checkpoint is complete, and the one before is discarded.
 */
final class Checkpoints {
    /** What one cost; nanoseconds in the thread of the operator and until its end, new bytes. */
    record Cost(long synchronous, long total, long bytes) {}

    private static final int SMALL_FILE_BYTES = 20 << 10; // Flink's default
    private static final int BUFFER_BYTES = 4 << 10;

    private final KeyedOneInputStreamOperatorTestHarness<Long, ?, ?> harness;
    private final FsCheckpointStreamFactory files;
    private final Path stateDirectory;
    private final SharedStateRegistryImpl registry = new SharedStateRegistryImpl();
    private final ExecutorService background = Executors.newSingleThreadExecutor();
    private final List<Cost> costs = new ArrayList<>();
    private OperatorSubtaskState latest;
    private Future<Finished> running;
    private long number;
    private long diskPeak;

    private record Finished(OperatorSubtaskState state, Cost cost, long diskBytes) {}

    Checkpoints(
            KeyedOneInputStreamOperatorTestHarness<Long, ?, ?> harness, Path target, Path stateDirectory)
            throws Exception {
        this.harness = harness;
        this.stateDirectory = stateDirectory;
        org.apache.flink.core.fs.Path path = new org.apache.flink.core.fs.Path(target.toUri());
        files =
                new FsCheckpointStreamFactory(
                        FileSystem.getLocalFileSystem(), path, path, SMALL_FILE_BYTES, BUFFER_BYTES);
    }

    /** Whether the last one is done, so that another may begin. */
    boolean areIdle() {
        return running == null || running.isDone();
    }

    void begin() throws Exception {
        complete();
        number++;
        long start = System.nanoTime();
        harness.prepareSnapshotPreBarrier(number);
        OperatorSnapshotFutures futures =
                harness.getOperator()
                        .snapshotState(
                                number,
                                number,
                                new CheckpointOptions(
                                        CheckpointType.CHECKPOINT,
                                        CheckpointStorageLocationReference.getDefault()),
                                files);
        long synchronous = System.nanoTime() - start;
        running = background.submit(() -> finished(futures, start, synchronous));
    }

    private Finished finished(OperatorSnapshotFutures futures, long start, long synchronous)
            throws Exception {
        OperatorSubtaskState state = OperatorSnapshotFinalizer.create(futures).getJobManagerOwnedState();
        Cost cost = new Cost(synchronous, System.nanoTime() - start, state.getCheckpointedSize());
        return new Finished(state, cost, Figures.diskBytes(stateDirectory));
    }

    /** Waits for the last one, and tells everybody. */
    void complete() throws Exception {
        if (running == null) {
            return;
        }
        Finished finished = running.get();
        running = null;
        costs.add(finished.cost());
        diskPeak = Math.max(diskPeak, finished.diskBytes());
        finished.state().registerSharedStates(registry, number);
        registry.checkpointCompleted(number);
        harness.notifyOfCompletedCheckpoint(number);
        if (latest != null) {
            latest.discardState();
            registry.unregisterUnusedState(number);
        }
        latest = finished.state();
    }

    List<Cost> costs() {
        return costs;
    }

    /** The most that the directory of the state had when a checkpoint was done. */
    long diskPeak() {
        return diskPeak;
    }

    void stop() throws Exception {
        background.shutdown();
        registry.close();
    }
}
