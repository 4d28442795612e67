package org.folddb.flink;

import org.apache.flink.runtime.state.internal.InternalValueState;

/** A state of one value. */
final class Values<K, N, V> extends AbstractState<K, N, V> implements InternalValueState<K, N, V> {
    Values(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    @Override
    public V value() {
        byte[] stored = table.get(rowKey());
        return stored == null ? defaultValue() : deserialize(stored, valueSerializer);
    }

    @Override
    public void update(V value) {
        if (value == null) {
            clear();
        } else {
            table.put(rowKey(), serialize(value, valueSerializer));
        }
    }
}
