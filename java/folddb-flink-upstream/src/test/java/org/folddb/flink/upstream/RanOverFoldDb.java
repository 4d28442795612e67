package org.folddb.flink.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.configuration.ReadableConfig;
import org.folddb.flink.FoldDbStateBackend;
import org.folddb.flink.FoldDbStateBackendFactory;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Fails a suite that did not run over FoldDB: in which nothing asked for its backend by the name of
 * another, or after which the native part of another is in the process. It goes with every class.
 */
public final class RanOverFoldDb implements BeforeAllCallback, AfterAllCallback {
    private static final AtomicLong MADE = new AtomicLong();

    private long madeBefore;

    /**
     * Makes a backend in place of another, and counts it.
     *
     * @param config as Flink has it
     * @param classLoader as Flink has it
     * @return the backend
     */
    public static FoldDbStateBackend make(ReadableConfig config, ClassLoader classLoader) {
        MADE.incrementAndGet();
        return new FoldDbStateBackendFactory().createFromConfig(config, classLoader);
    }

    /** The native libraries in this process whose names have one of these words. */
    static List<String> libraries(String... words) throws IOException {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains(".so") && Stream.of(words).anyMatch(line::contains))
                    .map(line -> line.substring(line.lastIndexOf('/') + 1))
                    .distinct()
                    .collect(Collectors.toList());
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        madeBefore = MADE.get();
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
        assertTrue(MADE.get() > madeBefore, context.getDisplayName() + " made no backend of FoldDB");
        assertEquals(List.of(), libraries("rocksdb", "forst"), "other backends in this process");
        assertEquals(1, libraries("folddb_jni").size(), "the native part of FoldDB");
    }
}
