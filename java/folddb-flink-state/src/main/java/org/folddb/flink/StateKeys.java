package org.folddb.flink;

import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.util.FlinkRuntimeException;
import org.folddb.FoldDb;
import org.folddb.Rows;
import org.folddb.Snapshot;

/**
 * The keys and namespaces of a state, of its rows as they were when the walk began: what is written
 * meanwhile is not seen.
 *
 * @param <K> the type of keys
 */
final class StateKeys<K> {
    private final FoldDb db;
    private final StateTable table;
    private final KeyGroupRange keyGroups;
    private final int keyGroupBytes;
    private final TypeSerializer<Object> namespaceSerializer;
    private final RowKeys<K> rowKeys;
    private final RowKeyParts<K> parts;

    @SuppressWarnings("unchecked")
    StateKeys(
            FoldDb db,
            StateTable table,
            TypeSerializer<K> keySerializer,
            KeyGroupRange keyGroups,
            int keyGroupBytes) {
        this.db = db;
        this.table = table;
        this.keyGroups = keyGroups;
        this.keyGroupBytes = keyGroupBytes;
        this.namespaceSerializer = (TypeSerializer<Object>) table.meta.getNamespaceSerializer();
        this.rowKeys = new RowKeys<>(keySerializer, keyGroupBytes);
        this.parts = new RowKeyParts<>(keySerializer, table.meta, keyGroupBytes);
    }

    /** The keys that any of these states has in a namespace, each once. */
    static <K> Stream<K> ofNamespace(List<StateKeys<K>> states, Object namespace) {
        Stream<K> keys = Stream.empty();
        for (int at = 0; at < states.size(); at++) {
            StateKeys<K> state = states.get(at);
            List<StateKeys<K>> earlier = states.subList(0, at);
            keys = Stream.concat(keys, stream(state.new KeysOfNamespace(namespace, earlier)));
        }
        return keys;
    }

    /** Every key with each of its namespaces, once. */
    <N> Stream<Tuple2<K, N>> withNamespaces() {
        return stream(new KeysWithNamespaces<N>());
    }

    private static <T> Stream<T> stream(StateKeys<?>.Walk<T> walk) {
        int is = Spliterator.ORDERED;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(walk, is), false)
                .onClose(walk::close);
    }

    private FlinkRuntimeException unreadable(IOException failure) {
        return new FlinkRuntimeException(
                "the keys of the state " + table.meta.getName() + " cannot be read", failure);
    }

    /** Whether it has a row of a key and namespace. */
    private boolean has(K key, int group, Object namespace) {
        rowKeys.setKey(key, group);
        return table.hasPrefix(rowKeys.of(table.order, namespace, namespaceSerializer));
    }

    /** Where the rows of a namespace begin in a key group, if the namespace comes first. */
    private byte[] beginOf(int group, byte[] namespace) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(keyGroupBytes + namespace.length);
        CompositeKeySerializationUtils.writeKeyGroup(group, keyGroupBytes, out);
        out.write(namespace);
        return out.getCopyOfBuffer();
    }

    /** A walk over rows, which begins when it is first asked. */
    private abstract class Walk<T> implements Iterator<T> {
        private Snapshot snapshot;
        private Iterator<Integer> groups;
        private Rows rows;
        private T found;

        /** How a row's key begins that belongs to what was seen: the rows of a map. */
        private byte[] seen = {};

        /** The only namespace, serialized, if it is known where in each key group it lies. */
        abstract byte[] onlyNamespace() throws IOException;

        /** What a row adds, of which the parts were read; null where it is nothing. */
        abstract T take(byte[] row) throws IOException;

        private void begin() throws IOException {
            if (onlyNamespace() == null) {
                groups = List.<Integer>of().iterator();
                rows = table.rows(true);
            } else {
                groups = keyGroups.iterator();
                snapshot = table.snapshot(db);
                rows = nextGroup();
            }
        }

        private Rows nextGroup() throws IOException {
            byte[] prefix = beginOf(groups.next(), onlyNamespace());
            return table.table().scan().at(snapshot).prefix(prefix).keysOnly().rows();
        }

        /** Goes to the next row; whether there is one. */
        private boolean nextRow() throws IOException {
            while (!rows.next()) {
                if (!groups.hasNext()) {
                    close();
                    return false;
                }
                rows.close();
                rows = nextGroup();
            }
            return true;
        }

        @Override
        public boolean hasNext() {
            try {
                if (rows == null) {
                    begin();
                }
                while (found == null && nextRow()) {
                    byte[] row = rows.key();
                    if (!Arrays.equals(row, 0, Math.min(seen.length, row.length), seen, 0, seen.length)
                            || seen.length == 0) {
                        parts.read(row, table.order);
                        seen = Arrays.copyOf(row, parts.end());
                        found = take(row);
                    }
                }
            } catch (IOException failure) {
                throw unreadable(failure);
            }
            return found != null;
        }

        @Override
        public T next() {
            if (!hasNext()) {
                throw new NoSuchElementException("there are no more keys");
            }
            T taken = found;
            found = null;
            return taken;
        }

        void close() {
            if (rows != null) {
                rows.close();
            }
            if (snapshot != null) {
                snapshot.close();
            }
        }
    }

    private final class KeysOfNamespace extends Walk<K> {
        private final Object namespace;
        private final List<StateKeys<K>> earlier;
        private final byte[] wanted;

        KeysOfNamespace(Object namespace, List<StateKeys<K>> earlier) {
            this.namespace = namespace;
            this.earlier = earlier;
            DataOutputSerializer out = new DataOutputSerializer(16);
            try {
                namespaceSerializer.serialize(namespace, out);
            } catch (IOException failure) {
                throw unreadable(failure);
            }
            wanted = out.getCopyOfBuffer();
        }

        @Override
        byte[] onlyNamespace() {
            return table.order == RowOrder.NAMESPACE_FIRST ? wanted : null;
        }

        @Override
        K take(byte[] row) {
            if (!parts.isNamespace(row, wanted)) {
                return null;
            }
            K key = parts.key();
            int group = CompositeKeySerializationUtils.extractKeyGroup(keyGroupBytes, row);
            for (StateKeys<K> state : earlier) {
                if (state.has(key, group, namespace)) {
                    return null;
                }
            }
            return key;
        }
    }

    private final class KeysWithNamespaces<N> extends Walk<Tuple2<K, N>> {
        @Override
        byte[] onlyNamespace() {
            return null;
        }

        @Override
        @SuppressWarnings("unchecked")
        Tuple2<K, N> take(byte[] row) {
            return Tuple2.of(parts.key(), (N) parts.namespace());
        }
    }
}
