package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rows that are compressed: checkpoints are smaller, and have the same state. */
class CompressionTest {
    private static final int KEYS = 20_000;

    @TempDir Path local;

    private AbstractKeyedStateBackend<Integer> open(
            FoldDbOptions.Compression compression, KeyedStateHandle... restored) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local.toString());
        configuration.set(FoldDbOptions.COMPRESSION, compression);
        return Backends.open(
                new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()), restored);
    }

    private static ListState<String> texts(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        return backend.getPartitionedState(
                VoidNamespace.INSTANCE,
                VoidNamespaceSerializer.INSTANCE,
                new ListStateDescriptor<>("texts", StringSerializer.INSTANCE));
    }

    private static void check(AbstractKeyedStateBackend<Integer> backend) throws Exception {
        ListState<String> texts = texts(backend);
        for (int key = 0; key < KEYS; key++) {
            backend.setCurrentKey(key);
            assertEquals(List.of("the first text of " + key, "and another"), texts.get());
        }
    }

    /** The bytes of a checkpoint, from which the state is restored without compression. */
    private long checkpointBytes(FoldDbOptions.Compression compression) throws Exception {
        KeyedStateHandle handle;
        try (AbstractKeyedStateBackend<Integer> backend = open(compression)) {
            ListState<String> texts = texts(backend);
            for (int key = 0; key < KEYS; key++) {
                backend.setCurrentKey(key);
                texts.add("the first text of " + key);
                texts.add("and another");
            }
            handle = Backends.incremental(backend, 1, CheckpointType.CHECKPOINT);
            check(backend);
            backend.dispose();
        }
        try (AbstractKeyedStateBackend<Integer> backend =
                open(FoldDbOptions.Compression.NONE, handle)) {
            check(backend);
            backend.dispose();
        }
        return handle.getStateSize();
    }

    @Test
    void aCheckpointOfCompressedRowsIsSmallerAndHasTheSameState() throws Exception {
        long plain = checkpointBytes(FoldDbOptions.Compression.NONE);
        long compressed = checkpointBytes(FoldDbOptions.Compression.LZ4);
        assertTrue(compressed < plain * 2 / 3, compressed + " bytes, and " + plain + " without");
    }
}
