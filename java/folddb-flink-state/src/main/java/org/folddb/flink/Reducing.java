package org.folddb.flink;

import org.apache.flink.api.common.functions.ReduceFunction;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.runtime.state.internal.InternalReducingState;

/** A reducing state. It adds blind, unless its values have a time to live. */
final class Reducing<K, N, V> extends Folding<K, N, V, V, V> implements InternalReducingState<K, N, V> {
    private ReduceFunction<V> function;
    private boolean isBlind;

    Reducing(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    @Override
    @SuppressWarnings("unchecked")
    void update(StateDescriptor<?, V> descriptor) {
        super.update(descriptor);
        function = ((ReducingStateDescriptor<V>) descriptor).getReduceFunction();
        isBlind = mayBeBlind(descriptor, function);
    }

    @Override
    public V get() {
        return getInternal();
    }

    @Override
    public void add(V value) throws Exception {
        byte[] key = currentRow();
        if (isBlind) {
            append(key, value);
        } else {
            V present = read(key);
            write(key, present == null ? value : function.reduce(present, value));
        }
    }

    @Override
    V combine(V earlier, V later) throws Exception {
        return function.reduce(earlier, later);
    }

    @Override
    Operands.Combine<V> combineElsewhere() throws Exception {
        return copy(function)::reduce;
    }
}
