package org.apache.flink.state.forst;

import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.folddb.flink.FoldDbStateBackend;
import org.folddb.flink.upstream.RanOverFoldDb;

/** What «forst» in a configuration leads to, as «rocksdb» does. */
public final class ForStStateBackendFactory implements StateBackendFactory<FoldDbStateBackend> {
    @Override
    public FoldDbStateBackend createFromConfig(ReadableConfig config, ClassLoader classLoader) {
        return RanOverFoldDb.make(config, classLoader);
    }
}
