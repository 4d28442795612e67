package org.folddb.flink;

import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.ttl.StateBackendTestContext;
import org.apache.flink.runtime.state.ttl.TtlStateTestBase;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;

/** Flink's own suite of values that have a time to live, unmodified. */
class FoldDbTtlTest extends TtlStateTestBase {
    @Override
    protected StateBackendTestContext createStateBackendTestContext(TtlTimeProvider timeProvider) {
        return new StateBackendTestContext(timeProvider) {
            @Override
            protected StateBackend createStateBackend() {
                return new FoldDbStateBackend();
            }
        };
    }

    @Override
    protected boolean incrementalCleanupSupported() {
        return false;
    }
}
