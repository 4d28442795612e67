package org.folddb.flink;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.internal.InternalListState;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;

/** A state of a list, to which elements are added blind. */
final class Lists<K, N, T> extends AbstractState<K, N, List<T>> implements InternalListState<K, N, T> {
    private final ListDelimitedSerializer lists = new ListDelimitedSerializer();
    private TypeSerializer<T> elementSerializer;

    Lists(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    @Override
    void update(StateDescriptor<?, List<T>> descriptor) {
        super.update(descriptor);
        elementSerializer = ((ListSerializer<T>) valueSerializer).getElementSerializer();
    }

    @Override
    public Iterable<T> get() throws IOException {
        return getInternal();
    }

    @Override
    public List<T> getInternal() throws IOException {
        return lists.deserializeList(table.get(rowKey()), elementSerializer);
    }

    @Override
    public void add(T value) {
        Objects.requireNonNull(value, "null cannot be added to a list state");
        table.append(rowKey(), serialize(value, elementSerializer));
    }

    @Override
    public void addAll(List<T> values) throws IOException {
        Objects.requireNonNull(values, "the values to be added are null");
        if (!values.isEmpty()) {
            table.append(rowKey(), lists.serializeList(values, elementSerializer));
        }
    }

    @Override
    public void update(List<T> values) throws IOException {
        updateInternal(values);
    }

    @Override
    public void updateInternal(List<T> values) throws IOException {
        Objects.requireNonNull(values, "the new values are null");
        if (values.isEmpty()) {
            clear();
        } else {
            table.put(rowKey(), lists.serializeList(values, elementSerializer));
        }
    }

    @Override
    public void mergeNamespaces(N target, Collection<N> sources) {
        appendNamespaces(target, sources);
    }

    @Override
    byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        return Operands.migrate(
                stored,
                ((TtlAwareSerializer.TtlAwareListSerializer<?>) before).getElementSerializer(),
                ((TtlAwareSerializer.TtlAwareListSerializer<?>) now).getElementSerializer(),
                time);
    }
}
