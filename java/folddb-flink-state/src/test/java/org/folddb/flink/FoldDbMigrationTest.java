package org.folddb.flink;

import java.util.List;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.StateBackendMigrationTestBase;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameter;
import org.apache.flink.testutils.junit.extensions.parameterized.ParameterizedTestExtension;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.junit.jupiter.api.extension.ExtendWith;

/** Flink's own suite of state migration, unmodified, for both kinds of checkpoints. */
@ExtendWith(ParameterizedTestExtension.class)
class FoldDbMigrationTest extends StateBackendMigrationTestBase<FoldDbStateBackend> {
    @Parameters(name = "incremental = {0}")
    private static List<Boolean> parameters() {
        return List.of(false, true);
    }

    @Parameter private boolean isIncremental;

    @Override
    protected FoldDbStateBackend getStateBackend() {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, isIncremental);
        return new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
    }
}
