package org.folddb.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.checkpoint.CheckpointType;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the end of a task writes. */
class DisposeTest {
    @TempDir Path folder;

    private static List<String> made(WatchService watch) throws Exception {
        List<String> made = new ArrayList<>();
        WatchKey key = watch.poll(10, TimeUnit.SECONDS);
        while (key != null) {
            for (WatchEvent<?> event : key.pollEvents()) {
                made.add(event.context() + "");
            }
            if (!key.reset()) {
                return made; // the directory is gone
            }
            key = watch.poll(10, TimeUnit.SECONDS);
        }
        return made;
    }

    private static List<String> parts(List<String> names) {
        return names.stream().filter(name -> name.endsWith(".part")).collect(Collectors.toList());
    }

    /** The second time a checkpoint flushes before the end: such files would have been seen. */
    @Test
    @SuppressWarnings("unchecked")
    void theEndOfATaskWritesNoStateThatIsThenRemoved() throws Exception {
        for (boolean flushes : new boolean[] {false, true}) {
            Configuration configuration = new Configuration();
            configuration.set(FoldDbOptions.LOCAL_DIRECTORY, folder.toString());
            configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
            AbstractKeyedStateBackend<Integer> backend =
                    Backends.open(
                            new FoldDbStateBackend().configure(configuration, getClass().getClassLoader()));
            InternalListState<Integer, VoidNamespace, Long> list =
                    (InternalListState<Integer, VoidNamespace, Long>)
                            backend.getPartitionedState(
                                    VoidNamespace.INSTANCE,
                                    VoidNamespaceSerializer.INSTANCE,
                                    new ListStateDescriptor<>("list", LongSerializer.INSTANCE));
            for (int key = 0; key < 20_000; key++) {
                backend.setCurrentKey(key);
                list.add(1L);
            }
            Path store;
            try (Stream<Path> stores = Files.list(folder)) {
                store = stores.collect(Collectors.toList()).get(0);
            }
            try (WatchService watch = store.getFileSystem().newWatchService()) {
                store.register(watch, StandardWatchEventKinds.ENTRY_CREATE);
                if (flushes) {
                    Backends.incremental(backend, 1, CheckpointType.CHECKPOINT);
                }
                backend.dispose();
                assertFalse(Files.exists(store));
                List<String> parts = parts(made(watch));
                assertEquals(flushes, !parts.isEmpty(), parts.toString());
            }
        }
    }
}
