package org.folddb.flink;

import java.io.File;
import java.io.IOException;
import javax.annotation.Nonnull;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.memory.OpaqueMemoryResource;
import org.apache.flink.runtime.state.AbstractKeyedStateBackendBuilder;
import org.apache.flink.runtime.state.BackendBuildingException;
import org.apache.flink.runtime.state.InternalKeyContextImpl;
import org.apache.flink.runtime.state.StateBackend.KeyedStateBackendParameters;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.metrics.SizeTrackingStateConfig;
import org.apache.flink.util.IOUtils;
import org.folddb.FoldDb;
import org.folddb.FoldDbException;
import org.folddb.Options;
import org.folddb.SharedMemory;

/** Makes a keyed backend: an empty store, and in it the rows of the snapshots that are restored. */
final class FoldDbKeyedStateBackendBuilder<K> extends AbstractKeyedStateBackendBuilder<K> {
    private final File directory;
    private final Options options;
    private final OpaqueMemoryResource<SharedMemory> memory;
    private final FoldDbOptions.Adding aggregating;

    FoldDbKeyedStateBackendBuilder(
            KeyedStateBackendParameters<K> parameters,
            LatencyTrackingStateConfig latencyTracking,
            SizeTrackingStateConfig sizeTracking,
            StreamCompressionDecorator compression,
            File directory,
            Options options,
            OpaqueMemoryResource<SharedMemory> memory,
            FoldDbOptions.Adding aggregating) {
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
    }

    @Override
    @Nonnull
    public FoldDbKeyedStateBackend<K> build() throws BackendBuildingException {
        FoldDbKeyedStateBackend.Opened opened = open();
        try {
            new FullRestore<>(
                            opened,
                            keyGroupRange,
                            numberOfKeyGroups,
                            userCodeClassLoader,
                            restoreStateHandles,
                            keySerializerProvider)
                    .restore();
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
                    aggregating);
        } catch (Throwable failure) {
            opened.close();
            throw new BackendBuildingException("the keyed state cannot be restored into FoldDB", failure);
        }
    }

    private FoldDbKeyedStateBackend.Opened open() throws BackendBuildingException {
        try {
            FoldDb db = create();
            return new FoldDbKeyedStateBackend.Opened(db, directory, memory);
        } catch (IOException | FoldDbException failure) {
            IOUtils.closeQuietly(memory);
            throw new BackendBuildingException(
                    "the store " + directory + " for keyed state cannot be created", failure);
        }
    }

    private FoldDb create() throws IOException {
        File parent = directory.getParentFile();
        if (!parent.isDirectory() && !parent.mkdirs() && !parent.isDirectory()) {
            throw new IOException("the directory " + parent + " cannot be created");
        }
        return FoldDb.create(directory.toPath(), options);
    }
}
