package org.folddb.flink;

import java.io.IOException;
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

    /** The key group and the key; behind them, what else the last row has where they are first. */
    private final DataOutputSerializer key = new DataOutputSerializer(32);

    private int keyEnd;

    private final DataOutputSerializer out = new DataOutputSerializer(64);

    RowKeys(TypeSerializer<K> serializer, int keyGroupBytes) {
        this.serializer = serializer;
        this.keyGroupBytes = keyGroupBytes;
    }

    void setKey(K next, int group) {
        try {
            keyEnd = 0;
            key.clear();
            CompositeKeySerializationUtils.writeKeyGroup(group, keyGroupBytes, key);
            serializer.serialize(next, key);
            keyEnd = key.length();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a key cannot be serialized", failure);
        }
    }

    /** Writes a key of a row up to the key in the map, and says where. */
    private <N> DataOutputSerializer write(RowOrder order, N namespace, TypeSerializer<N> namespaces)
            throws IOException {
        if (keyEnd == 0) {
            throw new IllegalStateException("a state is used while no key is set");
        }
        if (order == RowOrder.NAMESPACE_FIRST) {
            out.clear();
            out.write(key.getSharedBuffer(), 0, keyGroupBytes);
            namespaces.serialize(namespace, out);
            out.write(key.getSharedBuffer(), keyGroupBytes, keyEnd - keyGroupBytes);
            return out;
        }
        boolean isAmbiguous =
                CompositeKeySerializationUtils.isAmbiguousKeyPossible(serializer, namespaces);
        key.setPosition(keyEnd); // the key stays for the next row
        if (isAmbiguous) {
            CompositeKeySerializationUtils.writeVariableIntBytes(keyEnd - keyGroupBytes, key);
        }
        CompositeKeySerializationUtils.writeNameSpace(namespace, namespaces, key, isAmbiguous);
        return key;
    }

    /** The key of a row, or how those of a map begin. */
    <N> byte[] of(RowOrder order, N namespace, TypeSerializer<N> namespaces) {
        try {
            return write(order, namespace, namespaces).getCopyOfBuffer();
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
            DataOutputSerializer row = write(order, namespace, namespaces);
            mapKeys.serialize(mapKey, row);
            return row.getCopyOfBuffer();
        } catch (IOException failure) {
            throw new FlinkRuntimeException("a key of a map state cannot be serialized", failure);
        }
    }
}
