package org.folddb.flink;

import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.CheckpointStorage;
import org.apache.flink.runtime.state.ConfigurableStateBackend;
import org.apache.flink.runtime.state.StateBackendTestBase;
import org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameter;
import org.apache.flink.testutils.junit.extensions.parameterized.ParameterizedTestExtension;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.junit.jupiter.api.extension.ExtendWith;

/** Flink's own suite of state backends, unmodified, with aggregating states of every kind. */
@ExtendWith(ParameterizedTestExtension.class)
class FoldDbStateBackendTest extends StateBackendTestBase<FoldDbStateBackend> {
    @Parameters(name = "aggregating = {0}")
    private static List<FoldDbOptions.Adding> parameters() {
        return "whole".equals(System.getProperty("folddb.suites"))
                ? List.of(FoldDbOptions.Adding.values())
                : List.of(FoldDbOptions.Adding.BLIND);
    }

    @Parameter private FoldDbOptions.Adding aggregating;

    @Override
    protected ConfigurableStateBackend getStateBackend() {
        Configuration configuration = new Configuration();
        configuration.set(FoldDbOptions.AGGREGATING, aggregating);
        return new FoldDbStateBackend().configure(configuration, getClass().getClassLoader());
    }

    @Override
    protected CheckpointStorage getCheckpointStorage() {
        return new JobManagerCheckpointStorage();
    }

    @Override
    protected boolean isSerializerPresenceRequiredOnRestore() {
        return false;
    }

    @Override
    protected boolean supportsAsynchronousSnapshots() {
        return true;
    }

    @Override
    protected boolean isSafeToReuseKVState() {
        return false; // timers are on the heap
    }
}
