package org.folddb.flink;

import java.io.IOException;
import java.util.Arrays;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.util.FlinkRuntimeException;

/**
 * Makes keys of rows of one key after the other. Not for several threads.
 *
 * @param <K> the type of keys
 */
final class RowKeys<K> {
    private final TypeSerializer<K> serializer;
    private final int keyGroupBytes;

    /** The key group and the key. */
    private final DataOutputSerializer key = new DataOutputSerializer(32);

    private final DataOutputSerializer out = new DataOutputSerializer(64);

    RowKeys(TypeSerializer<K> serializer, int keyGroupBytes) {
        this.serializer = serializer;
        this.keyGroupBytes = keyGroupBytes;
    }

    void setKey(K next, int group) {
        try {
            key.clear();
            CompositeKeySerializationUtils.writeKeyGroup(group, keyGroupBytes, key);
            serializer.serialize(next, key);
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a key cannot be serialized", failure);
        }
    }

    private <N> void write(RowOrder order, N namespace, TypeSerializer<N> namespaces) throws IOException {
        if (key.length() == 0) {
            throw new IllegalStateException("a state is used while no key is set");
        }
        boolean isAmbiguous =
                CompositeKeySerializationUtils.isAmbiguousKeyPossible(serializer, namespaces);
        out.clear();
        order.write(
                key.getSharedBuffer(), key.length(), keyGroupBytes, namespace, namespaces, isAmbiguous, out);
    }

    /** The key of a row, or how those of a map begin. */
    <N> byte[] of(RowOrder order, N namespace, TypeSerializer<N> namespaces) {
        try {
            write(order, namespace, namespaces);
            return copied();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a namespace cannot be serialized", failure);
        }
    }

    /** The key of a row of a map. */
    <N, UK> byte[] of(
            RowOrder order,
            N namespace,
            TypeSerializer<N> namespaces,
            UK mapKey,
            TypeSerializer<UK> mapKeys) {
        try {
            write(order, namespace, namespaces);
            mapKeys.serialize(mapKey, out);
            return copied();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a key of a map state cannot be serialized", failure);
        }
    }

    private byte[] copied() {
        return Arrays.copyOf(out.getSharedBuffer(), out.length());
    }
}
