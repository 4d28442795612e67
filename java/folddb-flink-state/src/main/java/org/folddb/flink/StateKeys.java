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
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.util.FlinkRuntimeException;
import org.folddb.Rows;

/**
 * The keys and namespaces of a state, of its rows as they were when the walk began: what is written
 * meanwhile is not seen.
 *
 * @param <K> the type of keys
 */
final class StateKeys<K> {
    private final StateTable table;
    private final TypeSerializer<K> keySerializer;
    private final TypeSerializer<Object> namespaceSerializer;
    private final int keyGroupBytes;
    private final boolean isAmbiguous;
    private final DataInputDeserializer in = new DataInputDeserializer();

    @SuppressWarnings("unchecked")
    StateKeys(StateTable table, TypeSerializer<K> keySerializer, int keyGroupBytes) {
        this.table = table;
        this.keySerializer = keySerializer;
        this.namespaceSerializer = (TypeSerializer<Object>) table.meta.getNamespaceSerializer();
        this.keyGroupBytes = keyGroupBytes;
        this.isAmbiguous =
                CompositeKeySerializationUtils.isAmbiguousKeyPossible(keySerializer, namespaceSerializer);
    }

    private byte[] bytesOf(Object namespace) throws IOException {
        DataOutputSerializer out = new DataOutputSerializer(16);
        CompositeKeySerializationUtils.writeNameSpace(namespace, namespaceSerializer, out, isAmbiguous);
        return out.getCopyOfBuffer();
    }

    private K keyOf(byte[] row) throws IOException {
        in.setBuffer(row);
        in.skipBytesToRead(keyGroupBytes);
        return CompositeKeySerializationUtils.readKey(keySerializer, in, isAmbiguous);
    }

    private Object namespaceAfterKey() throws IOException {
        return CompositeKeySerializationUtils.readNamespace(namespaceSerializer, in, isAmbiguous);
    }

    /** The keys that any of these states has in a namespace, each once. */
    static <K> Stream<K> ofNamespace(List<StateKeys<K>> states, Object namespace) {
        Stream<K> keys = Stream.empty();
        for (int at = 0; at < states.size(); at++) {
            List<StateKeys<K>> earlier = states.subList(0, at);
            keys = Stream.concat(keys, states.get(at).keysUnlessIn(earlier, namespace));
        }
        return keys;
    }

    private Stream<K> keysUnlessIn(List<StateKeys<K>> earlier, Object namespace) {
        try {
            byte[] wanted = bytesOf(namespace);
            return stream(new KeysOfNamespace(wanted, earlier));
        } catch (IOException failure) {
            throw unreadable(failure);
        }
    }

    /** Every key with each of its namespaces, once. */
    <N> Stream<Tuple2<K, N>> withNamespaces() {
        return stream(new KeysWithNamespaces<N>());
    }

    private static <T> Stream<T> stream(Walk<T> walk) {
        int is = Spliterator.ORDERED;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(walk, is), false)
                .onClose(walk::close);
    }

    private FlinkRuntimeException unreadable(IOException failure) {
        return new FlinkRuntimeException(
                "the keys of the state " + table.meta.getName() + " cannot be read", failure);
    }

    /** A walk over all rows, which begins when it is first asked. */
    private abstract static class Walk<T> implements Iterator<T> {
        private final StateKeys<?> keys;
        private Rows rows;
        private T found;

        Walk(StateKeys<?> keys) {
            this.keys = keys;
        }

        /** What this row adds; null where it is nothing new. */
        abstract T take(byte[] row) throws IOException;

        @Override
        public boolean hasNext() {
            if (rows == null) {
                rows = keys.table.rows(true);
            }
            try {
                while (found == null && rows.next()) {
                    found = take(rows.key());
                }
            } catch (IOException failure) {
                throw keys.unreadable(failure);
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
        }
    }

    private final class KeysOfNamespace extends Walk<K> {
        private final byte[] namespace;
        private final List<StateKeys<K>> earlier;

        /** The rows of a map with this beginning belong to a key that was seen. */
        private byte[] seen = {};

        KeysOfNamespace(byte[] namespace, List<StateKeys<K>> earlier) {
            super(StateKeys.this);
            this.namespace = namespace;
            this.earlier = earlier;
        }

        @Override
        K take(byte[] row) throws IOException {
            K key = keyOf(row);
            int begin = in.getPosition();
            int end = begin + namespace.length;
            if (end > row.length || !Arrays.equals(row, begin, end, namespace, 0, namespace.length)) {
                return null;
            }
            if (seen.length == end && Arrays.equals(row, 0, end, seen, 0, end)) {
                return null;
            }
            seen = Arrays.copyOf(row, end);
            for (StateKeys<K> state : earlier) {
                if (state.table.hasPrefix(seen)) {
                    return null;
                }
            }
            return key;
        }
    }

    private final class KeysWithNamespaces<N> extends Walk<Tuple2<K, N>> {
        private byte[] seen = {};

        KeysWithNamespaces() {
            super(StateKeys.this);
        }

        @Override
        @SuppressWarnings("unchecked")
        Tuple2<K, N> take(byte[] row) throws IOException {
            K key = keyOf(row);
            N namespace = (N) namespaceAfterKey();
            int end = in.getPosition();
            if (seen.length == end && Arrays.equals(row, 0, end, seen, 0, end)) {
                return null;
            }
            seen = Arrays.copyOf(row, end);
            return Tuple2.of(key, namespace);
        }
    }
}
