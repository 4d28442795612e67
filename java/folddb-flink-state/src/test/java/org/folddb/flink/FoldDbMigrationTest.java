package org.folddb.flink;

import java.util.List;
import org.apache.flink.runtime.state.StateBackendMigrationTestBase;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameter;
import org.apache.flink.testutils.junit.extensions.parameterized.ParameterizedTestExtension;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.junit.jupiter.api.extension.ExtendWith;

/** Flink's own suite of state migration, unmodified. */
@ExtendWith(ParameterizedTestExtension.class)
class FoldDbMigrationTest extends StateBackendMigrationTestBase<FoldDbStateBackend> {
    @Parameters(name = "{0}")
    private static List<String> parameters() {
        return List.of("FoldDB");
    }

    @Parameter private String name;

    @Override
    protected FoldDbStateBackend getStateBackend() {
        return new FoldDbStateBackend();
    }
}
