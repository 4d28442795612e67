package org.apache.flink.test.state;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.state.CheckpointableKeyedStateBackend;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.test.state.BackendSwitchSpecs.BackendSwitchSpec;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.apache.flink.util.FileUtils;
import org.folddb.flink.FoldDbOptions;
import org.folddb.flink.FoldDbStateBackend;

/** The suite for canonical savepoints from one backend to another, with FoldDB on either side. */
public class FoldDbSavepointStateBackendSwitchTest extends SavepointStateBackendSwitchTestBase {
    /**
     * A case of the suite.
     *
     * @param from what writes the savepoint
     * @param to what is restored from it
     */
    public FoldDbSavepointStateBackendSwitchTest(BackendSwitchSpec from, BackendSwitchSpec to) {
        super(from, to);
    }

    /**
     * Called by the suite.
     *
     * @return all pairs of FoldDB and a backend that the suite knows
     */
    @Parameters(name = "from: {0} to: {1}")
    public static Collection<BackendSwitchSpec[]> pairs() {
        BackendSwitchSpec folddb = new FoldDbSpec();
        List<BackendSwitchSpec[]> pairs = new ArrayList<>();
        pairs.add(new BackendSwitchSpec[] {folddb, folddb});
        for (BackendSwitchSpec other :
                List.of(
                        BackendSwitchSpecs.HEAP,
                        BackendSwitchSpecs.ROCKS,
                        BackendSwitchSpecs.ROCKS_HEAP_TIMERS)) {
            pairs.add(new BackendSwitchSpec[] {folddb, other});
            pairs.add(new BackendSwitchSpec[] {other, folddb});
        }
        return pairs;
    }

    /** Makes keyed backends of FoldDB. */
    private static final class FoldDbSpec implements BackendSwitchSpec {
        private final List<Path> directories = new ArrayList<>();

        @Override
        public CheckpointableKeyedStateBackend<String> createBackend(
                KeyGroupRange range, int keyGroups, Collection<KeyedStateHandle> restored)
                throws Exception {
            Path directory = Files.createTempDirectory("folddb-switch");
            directories.add(directory);
            Configuration configuration = new Configuration();
            configuration.set(FoldDbOptions.LOCAL_DIRECTORY, directory.toString());
            return new FoldDbStateBackend()
                    .configure(configuration, getClass().getClassLoader())
                    .createKeyedStateBackend(
                            new KeyedStateBackendParametersImpl<>(
                                    MockEnvironment.builder().build(),
                                    new JobID(),
                                    "operator",
                                    StringSerializer.INSTANCE,
                                    keyGroups,
                                    range,
                                    null,
                                    TtlTimeProvider.DEFAULT,
                                    new UnregisteredMetricsGroup(),
                                    (name, value) -> {},
                                    restored,
                                    new CloseableRegistry(),
                                    1.0));
        }

        @Override
        public void close() {
            directories.forEach(directory -> FileUtils.deleteDirectoryQuietly(directory.toFile()));
            directories.clear();
        }

        @Override
        public String toString() {
            return "FOLDDB";
        }
    }
}
