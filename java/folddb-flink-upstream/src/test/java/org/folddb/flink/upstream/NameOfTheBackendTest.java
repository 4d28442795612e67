package org.folddb.flink.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.nio.file.Path;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.flink.FoldDbStateBackend;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The suites run over FoldDB, and over nothing else that keeps state outside of the heap. */
class NameOfTheBackendTest {
    @TempDir Path folder;

    private static StateBackend loaded(String name) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(StateBackendOptions.STATE_BACKEND, name);
        return StateBackendLoader.loadStateBackendFromConfig(
                configuration, NameOfTheBackendTest.class.getClassLoader(), null);
    }

    /** Tasks find their backend by this loader, too. */
    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "forst"})
    void theNamesInTheSuitesLeadToFoldDb(String name) throws Exception {
        FoldDbStateBackend backend = assertInstanceOf(FoldDbStateBackend.class, loaded(name));
        AbstractKeyedStateBackend<Integer> keyed =
                backend.createKeyedStateBackend(
                        new KeyedStateBackendParametersImpl<>(
                                MockEnvironment.builder().build(),
                                new JobID(),
                                "operator",
                                IntSerializer.INSTANCE,
                                128,
                                KeyGroupRange.of(0, 127),
                                null,
                                TtlTimeProvider.DEFAULT,
                                new UnregisteredMetricsGroup(),
                                (metric, value) -> {},
                                List.of(),
                                new CloseableRegistry(),
                                1.0));
        assertEquals("folddb", keyed.getBackendTypeIdentifier());
        keyed.dispose();
    }

    /** What {@link RanOverFoldDb} looks for is seen where it is. */
    @Test
    void nativeLibrariesInTheProcessAreSeen() throws Exception {
        loaded("rocksdb");
        FoldDb.openOrCreate(folder, new Options()).close();
        assertEquals(1, RanOverFoldDb.libraries("folddb_jni").size());
        assertEquals(1, RanOverFoldDb.libraries("libjvm").size());
        assertEquals(List.of(), RanOverFoldDb.libraries("rocksdb", "forst"));
    }
}
