package org.folddb.flink;

import java.io.IOException;
import java.util.Collection;
import org.apache.flink.api.common.state.State;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.queryablestate.client.state.serialization.KvStateSerializer;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.internal.InternalKvState;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.util.FlinkRuntimeException;

/**
 * A state: its table, its serializers, and the namespace that it is at.
 *
 * @param <K> the type of keys
 * @param <N> the type of namespaces
 * @param <V> the type of what is stored
 */
abstract class AbstractState<K, N, V> implements InternalKvState<K, N, V>, State {
    final FoldDbKeyedStateBackend<K> backend;
    final StateTable table;
    final DataOutputSerializer out = new DataOutputSerializer(128);
    final DataInputDeserializer in = new DataInputDeserializer();

    TypeSerializer<N> namespaceSerializer;
    TypeSerializer<V> valueSerializer;
    private V defaultValue;
    private N namespace;

    AbstractState(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        this.backend = backend;
        this.table = table;
    }

    /** Takes serializers and default from the table and a descriptor, the first time and later. */
    @SuppressWarnings("unchecked")
    void update(StateDescriptor<?, V> descriptor) {
        namespaceSerializer = (TypeSerializer<N>) table.meta.getNamespaceSerializer();
        valueSerializer = (TypeSerializer<V>) table.meta.getStateSerializer();
        defaultValue = descriptor.getDefaultValue();
    }

    V defaultValue() {
        return defaultValue == null ? null : valueSerializer.copy(defaultValue);
    }

    /** The key of the row, or how those of a map begin: of the current key and namespace. */
    byte[] rowKey() {
        return backend.rowKeys().of(table.order, namespace, namespaceSerializer);
    }

    N namespace() {
        return namespace;
    }

    /** Moves the rows of the sources to that of the target, where the table folds them onto it. */
    void appendNamespaces(N target, Collection<N> sources) {
        if (sources == null) {
            return;
        }
        setCurrentNamespace(target);
        byte[] targetKey = rowKey();
        for (N source : sources) {
            if (source == null) {
                continue;
            }
            setCurrentNamespace(source);
            byte[] sourceKey = rowKey();
            byte[] moved = table.get(sourceKey);
            if (moved != null) {
                table.delete(sourceKey);
                table.append(targetKey, moved);
            }
        }
        setCurrentNamespace(target);
    }

    <T> byte[] serialize(T value, TypeSerializer<T> serializer) {
        try {
            out.clear();
            serializer.serialize(value, out);
            return out.getCopyOfBuffer();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a value cannot be serialized by " + serializer, failure);
        }
    }

    <T> T deserialize(byte[] bytes, TypeSerializer<T> serializer) {
        try {
            in.setBuffer(bytes);
            return serializer.deserialize(in);
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a value cannot be read by " + serializer, failure);
        }
    }

    @Override
    public void clear() {
        table.delete(rowKey());
    }

    @Override
    public void setCurrentNamespace(N namespace) {
        this.namespace = namespace;
    }

    @Override
    public TypeSerializer<K> getKeySerializer() {
        return backend.getKeySerializer();
    }

    @Override
    public TypeSerializer<N> getNamespaceSerializer() {
        return namespaceSerializer;
    }

    @Override
    public TypeSerializer<V> getValueSerializer() {
        return valueSerializer;
    }

    /** The key of a row that a query asks for; the query may be in another thread. */
    byte[] rowKey(
            byte[] serializedKeyAndNamespace,
            TypeSerializer<K> keySerializer,
            TypeSerializer<N> safeNamespaceSerializer)
            throws IOException {
        Tuple2<K, N> asked =
                KvStateSerializer.deserializeKeyAndNamespace(
                        serializedKeyAndNamespace, keySerializer, safeNamespaceSerializer);
        int group =
                KeyGroupRangeAssignment.assignToKeyGroup(asked.f0, backend.getNumberOfKeyGroups());
        RowKeys<K> keys = new RowKeys<>(keySerializer, backend.keyGroupBytes());
        keys.setKey(asked.f0, group);
        return keys.of(table.order, asked.f1, safeNamespaceSerializer);
    }

    @Override
    public byte[] getSerializedValue(
            byte[] serializedKeyAndNamespace,
            TypeSerializer<K> safeKeySerializer,
            TypeSerializer<N> safeNamespaceSerializer,
            TypeSerializer<V> safeValueSerializer)
            throws Exception {
        return table.query(
                rowKey(serializedKeyAndNamespace, safeKeySerializer, safeNamespaceSerializer));
    }

    /** The stored bytes of a row, written by an earlier serializer, as the present one writes them. */
    byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        DataInputDeserializer from = new DataInputDeserializer(stored);
        DataOutputSerializer to = new DataOutputSerializer(stored.length + 16);
        migrateOne(from, to, before, now, time);
        return to.getCopyOfBuffer();
    }

    /** Migrates one value. */
    @SuppressWarnings("unchecked")
    static <T> void migrateOne(
            DataInputDeserializer from,
            DataOutputSerializer to,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        TtlAwareSerializer<T, ?> reader = (TtlAwareSerializer<T, ?>) before;
        TtlAwareSerializer<T, ?> writer = (TtlAwareSerializer<T, ?>) now;
        writer.migrateValueFromPriorSerializer(reader, () -> reader.deserialize(from), to, time);
    }

    /** Makes one value of operands for a snapshot, which another thread writes; null for none. */
    RowTransform foldForSnapshot() {
        return null;
    }

    @Override
    public StateIncrementalVisitor<K, N, V> getStateIncrementalVisitor(int recommendedRecords) {
        throw new UnsupportedOperationException("FoldDB has no visitor of all entries of a state");
    }
}
