package org.folddb.flink;

import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.StateBackendFactory;

/** Makes the backend: {@code state.backend.type} is the name of this class. */
public final class FoldDbStateBackendFactory implements StateBackendFactory<FoldDbStateBackend> {
    /** Called by Flink. */
    public FoldDbStateBackendFactory() {}

    @Override
    public FoldDbStateBackend createFromConfig(ReadableConfig config, ClassLoader classLoader) {
        return new FoldDbStateBackend().configure(config, classLoader);
    }
}
