package org.folddb.flink;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.CheckpointStorage;
import org.apache.flink.runtime.state.ConfigurableStateBackend;
import org.apache.flink.runtime.state.StateBackendTestBase;
import org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameter;
import org.apache.flink.testutils.junit.extensions.parameterized.ParameterizedTestExtension;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.junit.jupiter.api.extension.ExtendWith;

/** Flink's own suite of state backends, unmodified, for ways of adding and both kinds of checkpoints. */
@ExtendWith(ParameterizedTestExtension.class)
class FoldDbStateBackendTest extends StateBackendTestBase<FoldDbStateBackend> {
    @Parameters(name = "aggregating = {0}, incremental = {1}")
    private static List<Object[]> parameters() {
        List<Object[]> parameters = new ArrayList<>();
        parameters.add(new Object[] {FoldDbOptions.Adding.BLIND, false});
        parameters.add(new Object[] {FoldDbOptions.Adding.BLIND, true});
        if ("whole".equals(System.getProperty("folddb.suites"))) {
            parameters.add(new Object[] {FoldDbOptions.Adding.CHECKED, false});
            parameters.add(new Object[] {FoldDbOptions.Adding.CHECKED, true});
            parameters.add(new Object[] {FoldDbOptions.Adding.READING, false});
        }
        return parameters;
    }

    @Parameter private FoldDbOptions.Adding aggregating;

    @Parameter(1)
    private boolean isIncremental;

    @Override
    protected ConfigurableStateBackend getStateBackend() {
        Configuration configuration = new Configuration();
        configuration.set(FoldDbOptions.AGGREGATING, aggregating);
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, isIncremental);
        configuration.set(
                FoldDbOptions.COMPRESSION,
                isIncremental ? FoldDbOptions.Compression.LZ4 : FoldDbOptions.Compression.NONE);
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
