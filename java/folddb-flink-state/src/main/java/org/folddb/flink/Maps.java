package org.folddb.flink;

import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.function.Function;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.queryablestate.client.state.serialization.KvStateSerializer;
import org.apache.flink.runtime.state.internal.InternalMapState;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.util.FlinkRuntimeException;

/** A state of a map: a row for each of its keys. */
final class Maps<K, N, UK, UV> extends AbstractState<K, N, Map<UK, UV>>
        implements InternalMapState<K, N, UK, UV> {
    /** An iterator loads so many entries at once. */
    private static final int LOADED = 128;

    /** A map of more entries is cleared by one range delete, others key by key. */
    private static final int CLEARED_SINGLY = 32;

    private TypeSerializer<UK> userKeySerializer;
    private TypeSerializer<UV> userValueSerializer;

    Maps(FoldDbKeyedStateBackend<K> backend, StateTable table) {
        super(backend, table);
    }

    @Override
    void update(StateDescriptor<?, Map<UK, UV>> descriptor) {
        super.update(descriptor);
        MapSerializer<UK, UV> serializer = (MapSerializer<UK, UV>) valueSerializer;
        userKeySerializer = serializer.getKeySerializer();
        userValueSerializer = serializer.getValueSerializer();
    }

    private byte[] rowKey(UK key) {
        return backend.rowKeys()
                .of(table.order, namespace(), namespaceSerializer, key, userKeySerializer);
    }

    /** A byte says whether the value is null. */
    private byte[] valueBytes(UV value) {
        try {
            out.clear();
            out.writeBoolean(value == null);
            if (value != null) {
                userValueSerializer.serialize(value, out);
            }
            return out.getCopyOfBuffer();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a value of a map state cannot be serialized", failure);
        }
    }

    private static <V> V valueOf(DataInputDeserializer in, byte[] stored, TypeSerializer<V> serializer) {
        try {
            in.setBuffer(stored);
            return in.readBoolean() ? null : serializer.deserialize(in);
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a value of a map state cannot be read", failure);
        }
    }

    @Override
    public UV get(UK key) {
        byte[] stored = table.get(rowKey(key));
        return stored == null ? null : valueOf(in, stored, userValueSerializer);
    }

    @Override
    public void put(UK key, UV value) {
        table.put(rowKey(key), valueBytes(value));
    }

    @Override
    public void putAll(Map<UK, UV> map) {
        if (map != null) {
            map.forEach(this::put);
        }
    }

    @Override
    public void remove(UK key) {
        table.delete(rowKey(key));
    }

    @Override
    public boolean contains(UK key) {
        return table.get(rowKey(key)) != null;
    }

    @Override
    public Iterable<Map.Entry<UK, UV>> entries() {
        return () -> iterator();
    }

    @Override
    public Iterator<Map.Entry<UK, UV>> iterator() {
        return new Walk<>(rowKey(), userKeySerializer, userValueSerializer, in, entry -> entry);
    }

    @Override
    public Iterable<UK> keys() {
        byte[] prefix = rowKey();
        return () -> new Walk<>(prefix, userKeySerializer, userValueSerializer, in, Entry::getKey);
    }

    @Override
    public Iterable<UV> values() {
        byte[] prefix = rowKey();
        return () -> new Walk<>(prefix, userKeySerializer, userValueSerializer, in, Entry::getValue);
    }

    @Override
    public boolean isEmpty() {
        return !table.hasPrefix(rowKey());
    }

    @Override
    public void clear() {
        byte[] prefix = rowKey();
        List<byte[][]> rows = table.rowsOf(prefix, null, CLEARED_SINGLY + 1, true);
        if (rows.size() > CLEARED_SINGLY) {
            table.deletePrefix(prefix);
        } else {
            rows.forEach(row -> table.delete(row[0]));
        }
    }

    @Override
    public byte[] getSerializedValue(
            byte[] serializedKeyAndNamespace,
            TypeSerializer<K> safeKeySerializer,
            TypeSerializer<N> safeNamespaceSerializer,
            TypeSerializer<Map<UK, UV>> safeValueSerializer)
            throws Exception {
        byte[] prefix = rowKey(serializedKeyAndNamespace, safeKeySerializer, safeNamespaceSerializer);
        MapSerializer<UK, UV> serializer = (MapSerializer<UK, UV>) safeValueSerializer;
        TypeSerializer<UK> keys = serializer.getKeySerializer();
        TypeSerializer<UV> values = serializer.getValueSerializer();
        Iterator<Map.Entry<UK, UV>> walk =
                new Walk<>(prefix, keys, values, new DataInputDeserializer(), entry -> entry);
        return walk.hasNext() ? KvStateSerializer.serializeMap(() -> walk, keys, values) : null;
    }

    @Override
    byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        DataInputDeserializer from = new DataInputDeserializer(stored);
        DataOutputSerializer to = new DataOutputSerializer(stored.length + 16);
        boolean isNull = from.readBoolean();
        to.writeBoolean(isNull);
        if (!isNull) {
            migrateOne(
                    from,
                    to,
                    ((TtlAwareSerializer.TtlAwareMapSerializer<?, ?>) before).getValueSerializer(),
                    ((TtlAwareSerializer.TtlAwareMapSerializer<?, ?>) now).getValueSerializer(),
                    time);
        }
        return to.getCopyOfBuffer();
    }

    /** An entry, as it was when the iterator loaded it, and as it was changed through it since. */
    private final class Entry implements Map.Entry<UK, UV> {
        private final byte[] rowKey;
        private final UK key;
        private UV value;
        private boolean isRemoved;

        Entry(byte[] rowKey, UK key, UV value) {
            this.rowKey = rowKey;
            this.key = key;
            this.value = value;
        }

        @Override
        public UK getKey() {
            return key;
        }

        @Override
        public UV getValue() {
            return isRemoved ? null : value;
        }

        @Override
        public UV setValue(UV newValue) {
            if (isRemoved) {
                throw new IllegalStateException("the entry was removed");
            }
            UV before = value;
            value = newValue;
            table.put(rowKey, valueBytes(newValue));
            return before;
        }

        void remove() {
            isRemoved = true;
            table.delete(rowKey);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Map.Entry
                    && Objects.equals(getKey(), ((Map.Entry<?, ?>) other).getKey())
                    && Objects.equals(getValue(), ((Map.Entry<?, ?>) other).getValue());
        }

        @Override
        public int hashCode() {
            return Objects.hashCode(getKey()) ^ Objects.hashCode(getValue());
        }
    }

    /** Walks the rows of a map, loading some at a time; no scan is open in between. */
    private final class Walk<T> implements Iterator<T> {
        private final byte[] prefix;
        private final TypeSerializer<UK> keys;
        private final TypeSerializer<UV> values;
        private final DataInputDeserializer input;
        private final Function<Entry, T> take;

        private List<byte[][]> loaded = Collections.emptyList();
        private int next;
        private byte[] last;
        private boolean isAtEnd;
        private Entry current;

        Walk(
                byte[] prefix,
                TypeSerializer<UK> keys,
                TypeSerializer<UV> values,
                DataInputDeserializer input,
                Function<Entry, T> take) {
            this.prefix = prefix;
            this.keys = keys;
            this.values = values;
            this.input = input;
            this.take = take;
        }

        @Override
        public boolean hasNext() {
            if (next == loaded.size() && !isAtEnd) {
                loaded = table.rowsOf(prefix, last, LOADED, false);
                isAtEnd = loaded.size() < LOADED;
                next = 0;
                if (!loaded.isEmpty()) {
                    last = loaded.get(loaded.size() - 1)[0];
                }
            }
            return next < loaded.size();
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException("the map state has no more entries");
            }
            byte[][] row = loaded.get(next++);
            current = new Entry(row[0], keyOf(row[0]), valueOf(input, row[1], values));
            return take.apply(current);
        }

        private UK keyOf(byte[] rowKey) {
            try {
                input.setBuffer(rowKey, prefix.length, rowKey.length - prefix.length);
                return keys.deserialize(input);
            } catch (IOException failure) {
                throw new FlinkRuntimeException("a key of a map state cannot be read", failure);
            }
        }

        @Override
        public void remove() {
            if (current == null || current.isRemoved) {
                throw new IllegalStateException("call next before remove");
            }
            current.remove();
        }
    }
}
