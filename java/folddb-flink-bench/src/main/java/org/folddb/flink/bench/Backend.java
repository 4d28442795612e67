package org.folddb.flink.bench;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.state.forst.ForStOptions;
import org.apache.flink.state.forst.ForStStateBackend;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend.PriorityQueueStateType;
import org.apache.flink.state.rocksdb.RocksDBConfigurableOptions;
import org.apache.flink.state.rocksdb.RocksDBOptions;
import org.folddb.flink.FoldDbOptions;
import org.folddb.flink.FoldDbStateBackend;
import org.folddb.flink.FoldDbStateBackendFactory;
import org.rocksdb.CompressionType;

/** What keeps the state, and how it is set up. All but the heap use managed memory. */
enum Backend {
    /** As it comes. */
    FOLDDB,
    /** The same, where the job asks for native folds. */
    FOLDDB_NATIVE,
    /** As it comes: timers in RocksDB, too, and Snappy. */
    ROCKSDB,
    /** As it comes, but with timers on the heap, as FoldDB has them. */
    ROCKSDB_HEAP_TIMERS,
    /** Timers on the heap, partitioned indexes and filters of 10 bits, no compression. */
    ROCKSDB_TUNED,
    /** As it comes, with the states that block: local files, timers in ForSt. */
    FORST,
    /** Objects on the heap of Java. */
    HEAP;

    String title() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static Backend named(String title) {
        return valueOf(title.toUpperCase(Locale.ROOT).replace('-', '_'));
    }

    boolean isRocksDb() {
        return name().startsWith("ROCKSDB");
    }

    boolean runs(Workload workload) {
        return this != FOLDDB_NATIVE || workload.hasNativeFold();
    }

    StateBackend open(Path directory) {
        Configuration configuration = new Configuration();
        choose(configuration, directory);
        ClassLoader loader = getClass().getClassLoader();
        return switch (this) {
            case HEAP -> new HashMapStateBackend();
            case FOLDDB, FOLDDB_NATIVE -> new FoldDbStateBackend().configure(configuration, loader);
            case FORST -> new ForStStateBackend().configure(configuration, loader);
            case ROCKSDB, ROCKSDB_HEAP_TIMERS, ROCKSDB_TUNED ->
                new EmbeddedRocksDBStateBackend().configure(configuration, loader);
        };
    }

    /** Sets it as the backend of a job, with its state in a directory. */
    void choose(Configuration configuration, Path directory) {
        String local = directory.toString();
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, this != HEAP);
        configuration.set(StateBackendOptions.STATE_BACKEND, factory());
        switch (this) {
            case HEAP -> {}
            case FOLDDB, FOLDDB_NATIVE -> configuration.set(FoldDbOptions.LOCAL_DIRECTORY, local);
            case FORST -> configuration.set(ForStOptions.LOCAL_DIRECTORIES, local);
            case ROCKSDB, ROCKSDB_HEAP_TIMERS, ROCKSDB_TUNED -> setRocksDb(configuration, local);
        }
    }

    private String factory() {
        return switch (this) {
            case HEAP -> "hashmap";
            case FOLDDB, FOLDDB_NATIVE -> FoldDbStateBackendFactory.class.getName();
            case FORST -> "forst";
            case ROCKSDB, ROCKSDB_HEAP_TIMERS, ROCKSDB_TUNED -> "rocksdb";
        };
    }

    private void setRocksDb(Configuration configuration, String local) {
        configuration.set(RocksDBOptions.LOCAL_DIRECTORIES, local);
        if (this != ROCKSDB) {
            configuration.set(RocksDBOptions.TIMER_SERVICE_FACTORY, PriorityQueueStateType.HEAP);
        }
        if (this == ROCKSDB_TUNED) {
            configuration.set(RocksDBOptions.USE_PARTITIONED_INDEX_FILTERS, true);
            configuration.set(RocksDBConfigurableOptions.USE_BLOOM_FILTER, true);
            configuration.set(RocksDBConfigurableOptions.BLOOM_FILTER_BITS_PER_KEY, 10.0);
            configuration.set(
                    RocksDBConfigurableOptions.COMPRESSION_PER_LEVEL,
                    List.of(CompressionType.NO_COMPRESSION));
        }
    }
}
