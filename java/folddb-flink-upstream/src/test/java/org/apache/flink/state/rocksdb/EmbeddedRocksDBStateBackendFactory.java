package org.apache.flink.state.rocksdb;

import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.folddb.flink.FoldDbStateBackend;
import org.folddb.flink.upstream.RanOverFoldDb;

/**
 * What «rocksdb» in a configuration leads to: Flink looks this class up by its name, and test
 * classes come before those of jars. So suites that name that backend run over FoldDB.
 */
public final class EmbeddedRocksDBStateBackendFactory
        implements StateBackendFactory<FoldDbStateBackend> {
    @Override
    public FoldDbStateBackend createFromConfig(ReadableConfig config, ClassLoader classLoader) {
        return RanOverFoldDb.make(config, classLoader);
    }
}
