package org.folddb.flink;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.RunnableFuture;
import java.util.stream.Stream;
import javax.annotation.Nonnull;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.runtime.checkpoint.CheckpointOptions;
import org.apache.flink.runtime.memory.OpaqueMemoryResource;
import org.apache.flink.runtime.query.TaskKvStateRegistry;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.CheckpointStreamFactory;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.HeapPriorityQueuesManager;
import org.apache.flink.runtime.state.InternalKeyContext;
import org.apache.flink.runtime.state.KeyGroupedInternalPriorityQueue;
import org.apache.flink.runtime.state.Keyed;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.LocalRecoveryConfig;
import org.apache.flink.runtime.state.LocalSnapshotDirectoryProvider;
import org.apache.flink.runtime.state.PriorityComparable;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.SavepointResources;
import org.apache.flink.runtime.state.SnapshotExecutionType;
import org.apache.flink.runtime.state.SnapshotResources;
import org.apache.flink.runtime.state.SnapshotResult;
import org.apache.flink.runtime.state.SnapshotStrategy;
import org.apache.flink.runtime.state.SnapshotStrategyRunner;
import org.apache.flink.runtime.state.StateSnapshotTransformer.StateSnapshotTransformFactory;
import org.apache.flink.runtime.state.StreamCompressionDecorator;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueElement;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.metrics.LatencyTrackingStateConfig;
import org.apache.flink.runtime.state.metrics.SizeTrackingStateConfig;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.util.FileUtils;
import org.apache.flink.util.FlinkRuntimeException;
import org.apache.flink.util.IOUtils;
import org.apache.flink.util.StateMigrationException;
import org.folddb.FoldDb;
import org.folddb.FoldDbException;
import org.folddb.Rows;
import org.folddb.SharedMemory;
import org.folddb.Table;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The keyed state of one operator: a store, in which each state is a table. One thread uses it, save
 * for snapshots and queries.
 *
 * @param <K> the type of keys
 */
final class FoldDbKeyedStateBackend<K> extends AbstractKeyedStateBackend<K> {
    private static final Logger LOG = LoggerFactory.getLogger(FoldDbKeyedStateBackend.class);

    private final FoldDb db;
    private final WriteBuffer writes;
    private final FoldDbOptions.Adding aggregating;
    private final boolean isIncremental;
    private final LocalRecoveryConfig localRecovery;

    /** The tables of states by the names of states, in the order in which they were made. */
    private final LinkedHashMap<String, StateTable> tables;

    private final HeapPriorityQueuesManager timers;
    private final RowKeys<K> rowKeys;
    private final int keyGroupBytes;
    private boolean isDisposed;

    /** What an open store and its restored states are. */
    static final class Opened {
        final FoldDb db;
        final File directory;
        final OpaqueMemoryResource<SharedMemory> memory;
        final WriteBuffer writes;
        final FoldDbOptions.Compression compression;
        final int keyGroupBytes;
        final LinkedHashMap<String, StateTable> tables = new LinkedHashMap<>();
        final Map<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> queues = new LinkedHashMap<>();

        /** Whose checkpoints may share files with those that come. */
        UUID backendId = UUID.randomUUID();

        final UploadedFiles uploaded = new UploadedFiles();

        /** What reports on the store; null if nothing does. */
        StoreReports reports;

        Opened(
                FoldDb db,
                File directory,
                OpaqueMemoryResource<SharedMemory> memory,
                FoldDbOptions.Compression compression,
                int keyGroupBytes) {
            this.db = db;
            this.directory = directory;
            this.memory = memory;
            this.compression = compression;
            this.keyGroupBytes = keyGroupBytes;
            this.writes = new WriteBuffer(db);
        }

        /** The table of a new state, with a native fold or without one. */
        StateTable create(RegisteredKeyValueStateBackendMetaInfo<?, ?> meta, String spec) {
            return adopt(
                    db.createTable(
                            StateTable.nextName(db), StateTable.rulesOf(spec, compression.name())),
                    meta,
                    RowOrder.of(meta));
        }

        StateTable adopt(
                Table table, RegisteredKeyValueStateBackendMetaInfo<?, ?> meta, RowOrder order) {
            StateTable adopted =
                    new StateTable(table, writes, meta, order, keyGroupBytes);
            tables.put(meta.getName(), adopted);
            return adopted;
        }

        private void logFigures() {
            if (LOG.isInfoEnabled()) {
                try {
                    Map<String, Double> figures = db.stats();
                    figures.values().removeIf(figure -> figure == 0);
                    LOG.info("The FoldDB store {} ends with {}.", directory, figures);
                } catch (FoldDbException failure) {
                    LOG.info("The FoldDB store {} ends without figures.", directory, failure);
                }
            }
        }

        /** Closes the store, and removes its files. */
        void close() {
            IOUtils.closeQuietly(reports);
            logFigures();
            // What must last is in checkpoints: memtables would be written to be deleted.
            IOUtils.closeQuietly(db::closeWithoutFlush);
            try {
                FileUtils.deleteDirectory(directory);
            } catch (IOException failure) {
                LOG.warn("The directory {} of a FoldDB store cannot be removed.", directory, failure);
            }
            IOUtils.closeQuietly(memory);
        }
    }

    private final Opened opened;

    FoldDbKeyedStateBackend(
            TaskKvStateRegistry kvStateRegistry,
            TypeSerializer<K> keySerializer,
            ClassLoader userCodeClassLoader,
            ExecutionConfig executionConfig,
            TtlTimeProvider ttlTimeProvider,
            LatencyTrackingStateConfig latencyTracking,
            SizeTrackingStateConfig sizeTracking,
            CloseableRegistry cancelStreamRegistry,
            StreamCompressionDecorator compression,
            InternalKeyContext<K> keyContext,
            Opened opened,
            FoldDbOptions.Adding aggregating,
            boolean isIncremental,
            LocalRecoveryConfig localRecovery) {
        super(
                kvStateRegistry,
                keySerializer,
                userCodeClassLoader,
                executionConfig,
                ttlTimeProvider,
                latencyTracking,
                sizeTracking,
                cancelStreamRegistry,
                compression,
                keyContext);
        this.opened = opened;
        this.db = opened.db;
        this.writes = opened.writes;
        this.tables = opened.tables;
        this.aggregating = aggregating;
        this.isIncremental = isIncremental;
        this.localRecovery = localRecovery;
        this.keyGroupBytes =
                CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(numberOfKeyGroups);
        this.rowKeys = new RowKeys<>(keySerializer, keyGroupBytes);
        this.timers =
                new HeapPriorityQueuesManager(
                        opened.queues,
                        GroupedTimers.factory(keyGroupRange, numberOfKeyGroups),
                        keyGroupRange,
                        numberOfKeyGroups);
    }

    RowKeys<K> rowKeys() {
        return rowKeys;
    }

    int keyGroupBytes() {
        return keyGroupBytes;
    }

    ClassLoader userClassLoader() {
        return userCodeClassLoader;
    }

    FoldDbOptions.Adding aggregating() {
        return aggregating;
    }

    @Override
    public void setCurrentKey(K key) {
        super.setCurrentKey(key);
        rowKeys.setKey(key, getCurrentKeyGroupIndex());
    }

    @Override
    public void setCurrentKeyAndKeyGroup(K key, int keyGroup) {
        super.setCurrentKeyAndKeyGroup(key, keyGroup);
        rowKeys.setKey(key, keyGroup);
    }

    // States

    @Override
    @Nonnull
    public <N, SV, SEV, S extends State, IS extends S> IS createOrUpdateInternalState(
            @Nonnull TypeSerializer<N> namespaceSerializer,
            @Nonnull StateDescriptor<S, SV> descriptor,
            @Nonnull StateSnapshotTransformFactory<SEV> transform)
            throws Exception {
        return createOrUpdateInternalState(namespaceSerializer, descriptor, transform, false);
    }

    @Override
    @Nonnull
    @SuppressWarnings("unchecked")
    public <N, SV, SEV, S extends State, IS extends S> IS createOrUpdateInternalState(
            @Nonnull TypeSerializer<N> namespaceSerializer,
            @Nonnull StateDescriptor<S, SV> descriptor,
            @Nonnull StateSnapshotTransformFactory<SEV> transform,
            boolean allowFutureMetadataUpdates)
            throws Exception {
        StateTable table = tables.get(descriptor.getName());
        FoldAggregate<?, ?> function = NativeFold.functionOf(descriptor);
        boolean isMigrated = false;
        if (table == null) {
            table =
                    opened.create(
                            new RegisteredKeyValueStateBackendMetaInfo<>(
                                    descriptor.getType(),
                                    descriptor.getName(),
                                    namespaceSerializer,
                                    descriptor.getSerializer(),
                                    StateSnapshotTransformFactory.noTransform()),
                            function == null ? null : function.spec());
        } else {
            checkFold(table, function);
            isMigrated = updateSerializers(table, namespaceSerializer, descriptor);
        }
        RegisteredKeyValueStateBackendMetaInfo<N, SV> meta =
                (RegisteredKeyValueStateBackendMetaInfo<N, SV>) table.meta;
        AbstractState<K, N, SV> state = (AbstractState<K, N, SV>) table.state;
        if (state == null) {
            state = newState(descriptor, table);
        }
        if (isMigrated) {
            migrateRows(table, state, meta);
        }
        if (function != null && table.spec() == null) {
            Relayout.toFold(db, table, function);
            state = newState(descriptor, table);
        }
        table.meta = allowFutureMetadataUpdates ? meta.withSerializerUpgradesAllowed() : meta;
        table.transform = transform;
        state.update(descriptor);
        table.state = state;
        return (IS) state;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private <N, V> AbstractState<K, N, V> newState(StateDescriptor<?, V> descriptor, StateTable table) {
        switch (descriptor.getType()) {
            case VALUE:
                return new Values<>(this, table);
            case LIST:
                return (AbstractState<K, N, V>) new Lists(this, table);
            case MAP:
                return (AbstractState<K, N, V>) new Maps(this, table);
            case REDUCING:
                return new Reducing<>(this, table);
            case AGGREGATING:
                return table.spec() == null
                        ? new Aggregating<>(this, table)
                        : (AbstractState<K, N, V>) new NativeFold<>(this, table);
            default:
                throw new FlinkRuntimeException(
                        "the state " + descriptor + " is of a type that FoldDB does not keep");
        }
    }

    /** Leaves the values of a native fold to no other function than one of that fold. */
    private void checkFold(StateTable table, FoldAggregate<?, ?> function)
            throws IOException, StateMigrationException {
        if (table.spec() == null || (function != null && function.spec().equals(table.spec()))) {
            return;
        }
        if (function != null) {
            throw new StateMigrationException(
                    "the restored state "
                            + table.meta.getName()
                            + " is folded by "
                            + table.spec()
                            + ", and its function now by "
                            + function.spec()
                            + "; give the operator another uid, or the state another name");
        }
        Relayout.toOperands(db, table);
    }

    /** Whether the rows must be migrated. */
    @SuppressWarnings("unchecked")
    private <N, SV> boolean updateSerializers(
            StateTable table, TypeSerializer<N> namespaceSerializer, StateDescriptor<?, SV> descriptor)
            throws StateMigrationException {
        RegisteredKeyValueStateBackendMetaInfo<N, SV> meta =
                (RegisteredKeyValueStateBackendMetaInfo<N, SV>) table.meta;
        TypeSerializer<N> namespacesBefore = meta.getNamespaceSerializer();
        TypeSerializerSchemaCompatibility<N> namespaces =
                meta.updateNamespaceSerializer(namespaceSerializer);
        if (namespaces.isCompatibleAfterMigration() || namespaces.isIncompatible()) {
            throw new StateMigrationException(
                    "the new namespace serializer "
                            + namespaceSerializer
                            + " must be compatible with that of the restored state, "
                            + namespacesBefore);
        }
        meta.checkStateMetaInfo(descriptor);
        TypeSerializer<SV> valuesBefore = meta.getStateSerializer();
        TypeSerializerSchemaCompatibility<SV> values =
                meta.updateStateSerializer(descriptor.getSerializer());
        if (values.isIncompatible()) {
            throw new StateMigrationException(
                    "the new serializer "
                            + descriptor.getSerializer()
                            + " is incompatible with that of the restored state, "
                            + valuesBefore);
        }
        if (values.isCompatibleAfterMigration()) {
            Migration.checkKeysOfMap(meta);
        }
        return values.isCompatibleAfterMigration();
    }

    private void migrateRows(
            StateTable table,
            AbstractState<?, ?, ?> state,
            RegisteredKeyValueStateBackendMetaInfo<?, ?> meta)
            throws IOException {
        LOG.info("The rows of the state {} are migrated to another serializer.", meta.getName());
        TtlAwareSerializer<?, ?> before =
                TtlAwareSerializer.wrapTtlAwareSerializer(meta.getPreviousStateSerializer());
        TtlAwareSerializer<?, ?> now =
                TtlAwareSerializer.wrapTtlAwareSerializer(meta.getStateSerializer());
        try (Rows rows = table.rows(false)) {
            while (rows.next()) {
                table.put(rows.key(), state.migrate(rows.value(), before, now, ttlTimeProvider));
            }
        }
    }

    // Keys

    @Override
    public <N> Stream<K> getKeys(String state, N namespace) {
        return getKeys(List.of(state), namespace);
    }

    @Override
    public <N> Stream<K> getKeys(List<String> states, N namespace) {
        List<StateKeys<K>> walks = new ArrayList<>();
        for (String state : states) {
            StateTable table = tables.get(state);
            if (table != null) {
                walks.add(keysOf(table));
            }
        }
        return StateKeys.ofNamespace(walks, namespace);
    }

    @Override
    public <N> Stream<Tuple2<K, N>> getKeysAndNamespaces(String state) {
        StateTable table = tables.get(state);
        return table == null
                ? Stream.empty()
                : keysOf(table).withNamespaces();
    }

    private StateKeys<K> keysOf(StateTable table) {
        return new StateKeys<>(db, table, keySerializer, keyGroupRange, keyGroupBytes);
    }

    @Override
    public int numKeyValueStateEntries() {
        int entries = 0;
        for (StateTable table : tables.values()) {
            try (Rows rows = table.rows(true)) {
                while (rows.next()) {
                    entries++;
                }
            }
        }
        return entries;
    }

    // Timers

    @Override
    @Nonnull
    public <T extends HeapPriorityQueueElement & PriorityComparable<? super T> & Keyed<?>>
            KeyGroupedInternalPriorityQueue<T> create(
                    @Nonnull String name, @Nonnull TypeSerializer<T> elementSerializer) {
        return timers.createOrUpdate(name, elementSerializer);
    }

    @Override
    public <T extends HeapPriorityQueueElement & PriorityComparable<? super T> & Keyed<?>>
            KeyGroupedInternalPriorityQueue<T> create(
                    @Nonnull String name,
                    @Nonnull TypeSerializer<T> elementSerializer,
                    boolean allowFutureMetadataUpdates) {
        return timers.createOrUpdate(name, elementSerializer, allowFutureMetadataUpdates);
    }

    // Snapshots

    private StoreSnapshot<K> storeSnapshot() {
        writes.flush();
        return new StoreSnapshot<>(
                db,
                tables.values(),
                timers.getRegisteredPQStates().values(),
                keyGroupRange,
                keyGroupBytes,
                keySerializer,
                keyGroupCompressionDecorator);
    }

    /** The local state of the task, where a checkpoint of this type stays on this machine, too. */
    private LocalSnapshotDirectoryProvider localState(CheckpointOptions options) {
        return localRecovery.isLocalBackupEnabled() && !options.getCheckpointType().isSavepoint()
                ? localRecovery.getLocalStateDirectoryProvider().orElse(null)
                : null;
    }

    private LocalBackup<K> localBackup(long checkpointId, LocalSnapshotDirectoryProvider localState)
            throws IOException {
        writes.flush();
        File place = new File(opened.directory + "_checkpoint_" + checkpointId + "_" + UUID.randomUUID());
        if (localState != null) {
            File parent = localState.subtaskSpecificCheckpointDirectory(checkpointId);
            Files.createDirectories(parent.toPath());
            place = new File(parent, opened.directory.getName());
        }
        return new LocalBackup<>(
                db,
                place,
                localState,
                tables.values(),
                timers.getRegisteredPQStates().values(),
                keyGroupRange,
                keyGroupBytes,
                keySerializer);
    }

    @Override
    @Nonnull
    public RunnableFuture<SnapshotResult<KeyedStateHandle>> snapshot(
            long checkpointId,
            long timestamp,
            @Nonnull CheckpointStreamFactory streams,
            @Nonnull CheckpointOptions options)
            throws Exception {
        // A savepoint that comes here is a native one: a canonical one is asked for by savepoint().
        if (isIncremental || options.getCheckpointType().isSavepoint()) {
            return run(
                    "incremental snapshot of a FoldDB store",
                    new IncrementalSnapshots<K>(
                            id -> localBackup(id, localState(options)), opened.backendId, keyGroupRange, opened.uploaded),
                    checkpointId,
                    timestamp,
                    streams,
                    options);
        }
        return run(
                "full snapshot of a FoldDB store",
                new FullSnapshots<>(this::storeSnapshot, localState(options)),
                checkpointId,
                timestamp,
                streams,
                options);
    }

    private <R extends SnapshotResources> RunnableFuture<SnapshotResult<KeyedStateHandle>> run(
            String what,
            SnapshotStrategy<KeyedStateHandle, R> strategy,
            long checkpointId,
            long timestamp,
            CheckpointStreamFactory streams,
            CheckpointOptions options)
            throws Exception {
        return new SnapshotStrategyRunner<>(
                        what, strategy, cancelStreamRegistry, SnapshotExecutionType.ASYNCHRONOUS)
                .snapshot(checkpointId, timestamp, streams, options);
    }

    @Override
    @Nonnull
    public SavepointResources<K> savepoint() {
        return new SavepointResources<>(storeSnapshot(), SnapshotExecutionType.ASYNCHRONOUS);
    }

    @Override
    public void notifyCheckpointComplete(long checkpointId) {
        opened.uploaded.complete(checkpointId);
    }

    @Override
    public void notifyCheckpointAborted(long checkpointId) {
        opened.uploaded.abort(checkpointId);
    }

    @Override
    public String getBackendTypeIdentifier() {
        return "folddb";
    }

    @Override
    public void dispose() {
        if (!isDisposed) {
            isDisposed = true;
            super.dispose();
            opened.close();
        }
    }
}
