package org.folddb.flink;

import java.io.File;
import java.io.IOException;
import java.time.Duration;
import javax.annotation.Nonnull;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.memory.OpaqueMemoryResource;
import org.apache.flink.runtime.state.AbstractKeyedStateBackendBuilder;
import org.apache.flink.runtime.state.BackendBuildingException;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.InternalKeyContextImpl;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.StateBackend.KeyedStateBackendParameters;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.metrics.SizeTrackingStateConfig;
import org.apache.flink.util.FileUtils;
import org.apache.flink.util.IOUtils;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.SharedMemory;

/** Makes a keyed backend: an empty store, and in it the rows of the snapshots that are restored. */
final class FoldDbKeyedStateBackendBuilder<K> extends AbstractKeyedStateBackendBuilder<K> {
    private final File directory;
    private final Options options;
    private final OpaqueMemoryResource<SharedMemory> memory;
    private final FoldDbOptions.Adding aggregating;
    private final FoldDbOptions.Compression rowCompression;
    private final boolean isIncremental;
    private final Duration reportInterval;
    private final CloseableRegistry cancelRegistry;
    private final MetricGroup metrics;
    private final LocalRecoveryConfig localRecovery;

    FoldDbKeyedStateBackendBuilder(
            KeyedStateBackendParameters<K> parameters,
            LatencyTrackingStateConfig latencyTracking,
            SizeTrackingStateConfig sizeTracking,
            StreamCompressionDecorator compression,
            File directory,
            Options options,
            OpaqueMemoryResource<SharedMemory> memory,
            FoldDbOptions.Adding aggregating,
            FoldDbOptions.Compression rowCompression,
            boolean isIncremental,
            Duration reportInterval) {
        super(
                parameters.getKvStateRegistry(),
                parameters.getKeySerializer(),
                parameters.getEnv().getUserCodeClassLoader().asClassLoader(),
                parameters.getNumberOfKeyGroups(),
                parameters.getKeyGroupRange(),
                parameters.getEnv().getExecutionConfig(),
                parameters.getTtlTimeProvider(),
                latencyTracking,
                sizeTracking,
                parameters.getStateHandles(),
                compression,
                parameters.getCancelStreamRegistry());
        this.directory = directory;
        this.options = options;
        this.memory = memory;
        this.aggregating = aggregating;
        this.rowCompression = rowCompression;
        this.isIncremental = isIncremental;
        this.reportInterval = reportInterval;
        this.cancelRegistry = parameters.getCancelStreamRegistry();
        this.metrics = parameters.getMetricGroup();
        this.localRecovery = parameters.getEnv().getTaskStateManager().createLocalRecoveryConfig();
    }

    @Override
    @Nonnull
    public FoldDbKeyedStateBackend<K> build() throws BackendBuildingException {
        IncrementalRestore<K> incremental = incremental();
        FoldDbKeyedStateBackend.Opened opened = open(incremental);
        try {
            if (incremental != null) {
                incremental.fill(opened);
            } else {
                new FullRestore<>(
                                opened,
                                keyGroupRange,
                                numberOfKeyGroups,
                                userCodeClassLoader,
                                restoreStateHandles,
                                keySerializerProvider)
                        .restore();
            }
            StoreMetrics.register(
                    metrics, opened.db, memory == null ? null : memory.getResourceHandle());
            opened.reports = StoreReports.start(opened.db, reportInterval);
            return new FoldDbKeyedStateBackend<>(
                    kvStateRegistry,
                    keySerializerProvider.currentSchemaSerializer(),
                    userCodeClassLoader,
                    executionConfig,
                    ttlTimeProvider,
                    latencyTrackingStateConfig,
                    sizeTrackingStateConfig,
                    new CloseableRegistry(), // that of the parameters is closed after this
                    keyGroupCompressionDecorator,
                    new InternalKeyContextImpl<>(keyGroupRange, numberOfKeyGroups),
                    opened,
                    aggregating,
                    isIncremental,
                    localRecovery);
        } catch (Throwable failure) {
            opened.close();
            throw new BackendBuildingException("the keyed state cannot be restored into FoldDB", failure);
        }
    }

    /** What restores incremental checkpoints; null if there are none. */
    private IncrementalRestore<K> incremental() throws BackendBuildingException {
        if (!IncrementalRestore.isFor(restoreStateHandles)) {
            return null;
        }
        try {
            return new IncrementalRestore<>(
                    directory,
                    options,
                    keyGroupRange,
                    numberOfKeyGroups,
                    userCodeClassLoader,
                    restoreStateHandles,
                    keySerializerProvider,
                    cancelRegistry);
        } catch (Throwable failure) {
            IOUtils.closeQuietly(memory);
            throw new BackendBuildingException("the keyed state cannot be restored into FoldDB", failure);
        }
    }

    private FoldDbKeyedStateBackend.Opened open(IncrementalRestore<K> incremental)
            throws BackendBuildingException {
        try {
            makeParent();
            FoldDb db =
                    incremental != null
                            ? incremental.open()
                            : FoldDb.create(directory.toPath(), options);
            int keyGroupBytes =
                    CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(
                            numberOfKeyGroups);
            return new FoldDbKeyedStateBackend.Opened(
                    db, directory, memory, rowCompression, keyGroupBytes);
        } catch (Throwable failure) {
            FileUtils.deleteDirectoryQuietly(directory);
            IOUtils.closeQuietly(memory);
            throw new BackendBuildingException(
                    "the store " + directory + " for keyed state cannot be made", failure);
        }
    }

    private void makeParent() throws IOException {
        File parent = directory.getParentFile();
        if (!parent.isDirectory() && !parent.mkdirs() && !parent.isDirectory()) {
            throw new IOException("the directory " + parent + " cannot be created");
        }
    }
}
