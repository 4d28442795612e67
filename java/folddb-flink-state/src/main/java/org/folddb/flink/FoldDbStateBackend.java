package org.folddb.flink;

import java.io.File;
import java.io.IOException;
import java.time.Duration;
import java.util.UUID;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.memory.OpaqueMemoryResource;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.AbstractManagedMemoryStateBackend;
import org.apache.flink.runtime.state.ConfigurableStateBackend;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.OperatorStateBackend;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.metrics.SizeTrackingStateConfig;
import org.folddb.Durability;
import org.folddb.Options;
import org.folddb.SharedMemory;

/**
 * Keeps keyed state in FoldDB: a store for each stateful operator and slot, in which each state is
 * a table. Reducing, aggregating and list states add without a read. Timers are on the heap.
 */
public final class FoldDbStateBackend extends AbstractManagedMemoryStateBackend
        implements ConfigurableStateBackend {
    private static final long serialVersionUID = 1L;

    /** The least that several stores can share. */
    private static final long SHARED_BYTES_MIN = 4 << 20;

    private static final String MEMORY_RESOURCE = "state-folddb-managed-memory";

    /** Where the stores are; null for the temporary directories of the task manager. */
    private String localDirectory;

    /** Whether the stores of a slot share its managed memory. */
    private boolean isMemoryManaged = FoldDbOptions.MANAGED_MEMORY.defaultValue();

    /** The budget of each store where memory is not managed. */
    private long memoryBytes = FoldDbOptions.MEMORY.defaultValue().getBytes();

    /** How the rows of new states are compressed. */
    private FoldDbOptions.Compression compression = FoldDbOptions.COMPRESSION.defaultValue();

    /** How aggregating states add. */
    private FoldDbOptions.Adding aggregating = FoldDbOptions.AGGREGATING.defaultValue();

    /** Whether checkpoints share files. */
    private boolean isIncremental = CheckpointingOptions.INCREMENTAL_CHECKPOINTS.defaultValue();

    /** How often the log says how a store is; zero for never. */
    private Duration reportInterval = FoldDbOptions.REPORT_INTERVAL.defaultValue();

    /** A backend with every default. */
    public FoldDbStateBackend() {}

    @Override
    public FoldDbStateBackend configure(ReadableConfig config, ClassLoader classLoader) {
        FoldDbStateBackend configured = new FoldDbStateBackend();
        configured.localDirectory =
                config.getOptional(FoldDbOptions.LOCAL_DIRECTORY).orElse(localDirectory);
        configured.isMemoryManaged =
                config.getOptional(FoldDbOptions.MANAGED_MEMORY).orElse(isMemoryManaged);
        configured.memoryBytes =
                config.getOptional(FoldDbOptions.MEMORY).map(size -> size.getBytes()).orElse(memoryBytes);
        configured.aggregating = config.getOptional(FoldDbOptions.AGGREGATING).orElse(aggregating);
        configured.compression = config.getOptional(FoldDbOptions.COMPRESSION).orElse(compression);
        configured.isIncremental =
                config.getOptional(CheckpointingOptions.INCREMENTAL_CHECKPOINTS).orElse(isIncremental);
        configured.reportInterval =
                config.getOptional(FoldDbOptions.REPORT_INTERVAL).orElse(reportInterval);
        configured.latencyTrackingConfigBuilder = latencyTrackingConfigBuilder.configure(config);
        configured.sizeTrackingConfigBuilder = sizeTrackingConfigBuilder.configure(config);
        if (configured.localDirectory != null && !new File(configured.localDirectory).isAbsolute()) {
            throw new IllegalConfigurationException(
                    FoldDbOptions.LOCAL_DIRECTORY.key()
                            + " is "
                            + configured.localDirectory
                            + ", which is not an absolute path");
        }
        return configured;
    }

    @Override
    public boolean supportsNoClaimRestoreMode() {
        return true; // the first checkpoint then shares no file with an earlier one
    }

    @Override
    public boolean supportsSavepointFormat(SavepointFormatType format) {
        return true; // a native one is an incremental checkpoint that shares nothing
    }

    @Override
    public <K> AbstractKeyedStateBackend<K> createKeyedStateBackend(
            KeyedStateBackendParameters<K> parameters) throws IOException {
        Environment env = parameters.getEnv();
        OpaqueMemoryResource<SharedMemory> shared =
                isMemoryManaged ? managed(env, parameters.getManagedMemoryFraction()) : null;
        Options options = new Options().durability(Durability.BUFFERED);
        options = shared == null
                ? options.memoryBytes(memoryBytes)
                : options.memoryBytes(Math.max(shared.getSize(), SHARED_BYTES_MIN)).shared(shared.getResourceHandle());
        LatencyTrackingStateConfig latency =
                latencyTrackingConfigBuilder.setMetricGroup(parameters.getMetricGroup()).build();
        SizeTrackingStateConfig size =
                sizeTrackingConfigBuilder.setMetricGroup(parameters.getMetricGroup()).build();
        return new FoldDbKeyedStateBackendBuilder<>(
                        parameters,
                        latency,
                        size,
                        getCompressionDecorator(env.getExecutionConfig()),
                        directory(parameters),
                        options,
                        shared,
                        aggregating,
                        compression,
                        isIncremental,
                        reportInterval)
                .build();
    }

    private static OpaqueMemoryResource<SharedMemory> managed(Environment env, double fraction)
            throws IOException {
        try {
            return env.getMemoryManager()
                    .getSharedMemoryResourceForManagedMemory(
                            MEMORY_RESOURCE,
                            size -> new SharedMemory(Math.max(size, SHARED_BYTES_MIN)),
                            fraction);
        } catch (Exception failure) {
            throw new IOException("the managed memory of the slot cannot be had for FoldDB", failure);
        }
    }

    private File directory(KeyedStateBackendParameters<?> parameters) {
        String[] local = {localDirectory};
        String[] directories =
                localDirectory != null
                        ? local
                        : parameters.getEnv().getIOManager().getSpillingDirectoriesPaths();
        UUID id = UUID.randomUUID();
        String chosen = directories[Math.floorMod(id.hashCode(), directories.length)];
        String operator = parameters.getOperatorIdentifier().replaceAll("[^a-zA-Z0-9-]", "_");
        return new File(chosen, "job_" + parameters.getJobID() + "_op_" + operator + "_" + id);
    }

    @Override
    public OperatorStateBackend createOperatorStateBackend(OperatorStateBackendParameters parameters)
            throws Exception {
        return new DefaultOperatorStateBackendBuilder(
                        parameters.getEnv().getUserCodeClassLoader().asClassLoader(),
                        parameters.getEnv().getExecutionConfig(),
                        true,
                        parameters.getStateHandles(),
                        parameters.getCancelStreamRegistry())
                .build();
    }
}
