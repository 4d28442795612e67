package org.folddb.flink;

import java.io.IOException;
import java.util.Arrays;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;

/**
 * Takes keys of rows apart, and puts their parts together in the other order. Keys and namespaces
 * tell by themselves where they end, as they must in canonical savepoints, too. Its serializers are
 * its own: snapshots are written by another thread.
 *
 * @param <K> the type of keys
 */
final class RowKeyParts<K> {
    private final TypeSerializer<K> keys;
    private final TypeSerializer<Object> namespaces;
    private final int keyGroupBytes;
    private final boolean isAmbiguous;
    private final boolean isMap;
    private final DataInputDeserializer in = new DataInputDeserializer();
    private final DataOutputSerializer out = new DataOutputSerializer(64);

    // Where the parts of the row begin and end that was taken apart last.
    private K key;
    private Object namespace;
    private int keyBegin;
    private int keyEnd;
    private int namespaceBegin;
    private int namespaceEnd;
    private int end;

    @SuppressWarnings("unchecked")
    RowKeyParts(
            TypeSerializer<K> keys, RegisteredKeyValueStateBackendMetaInfo<?, ?> meta, int keyGroupBytes) {
        this.keys = keys.duplicate();
        this.namespaces = (TypeSerializer<Object>) meta.getNamespaceSerializer().duplicate();
        this.keyGroupBytes = keyGroupBytes;
        this.isAmbiguous = CompositeKeySerializationUtils.isAmbiguousKeyPossible(keys, namespaces);
        this.isMap = meta.getStateType() == StateDescriptor.Type.MAP;
    }

    /** Takes a row apart. */
    void read(byte[] row, RowOrder order) throws IOException {
        in.setBuffer(row);
        in.skipBytesToRead(keyGroupBytes);
        if (order == RowOrder.NAMESPACE_FIRST) {
            readNamespace();
            readKey();
        } else {
            readKey();
            skipLength(keyEnd - keyBegin);
            readNamespace();
            skipLength(namespaceEnd - namespaceBegin);
        }
        end = in.getPosition();
    }

    private void readKey() throws IOException {
        keyBegin = in.getPosition();
        key = keys.deserialize(in);
        keyEnd = in.getPosition();
    }

    private void readNamespace() throws IOException {
        namespaceBegin = in.getPosition();
        namespace = namespaces.deserialize(in);
        namespaceEnd = in.getPosition();
    }

    /** In canonical order each has its length behind it where both are of variable length. */
    private void skipLength(int length) throws IOException {
        if (isAmbiguous) {
            CompositeKeySerializationUtils.readVariableIntBytes(in, length);
        }
    }

    K key() {
        return key;
    }

    Object namespace() {
        return namespace;
    }

    /** Whether the row is of this namespace. */
    boolean isNamespace(byte[] row, byte[] wanted) {
        return Arrays.equals(row, namespaceBegin, namespaceEnd, wanted, 0, wanted.length);
    }

    /** How many bytes of the row come before the key in the map. */
    int end() {
        return end;
    }

    /** A row's key, which is in one order, in the other. */
    byte[] translated(byte[] row, RowOrder from, RowOrder to) throws IOException {
        if (from == to) {
            return row;
        }
        if (from == RowOrder.NAMESPACE_FIRST && !isMap) {
            readUnparsed(row); // the key is what is left
        } else {
            read(row, from);
        }
        out.clear();
        out.write(row, 0, keyGroupBytes);
        if (to == RowOrder.NAMESPACE_FIRST) {
            out.write(row, namespaceBegin, namespaceEnd - namespaceBegin);
            out.write(row, keyBegin, keyEnd - keyBegin);
        } else {
            writeWithLength(row, keyBegin, keyEnd);
            writeWithLength(row, namespaceBegin, namespaceEnd);
        }
        out.write(row, end, row.length - end);
        return out.getCopyOfBuffer();
    }

    private void readUnparsed(byte[] row) throws IOException {
        in.setBuffer(row);
        in.skipBytesToRead(keyGroupBytes);
        readNamespace();
        keyBegin = namespaceEnd;
        keyEnd = row.length;
        end = row.length;
    }

    private void writeWithLength(byte[] row, int begin, int partEnd) throws IOException {
        out.write(row, begin, partEnd - begin);
        if (isAmbiguous) {
            CompositeKeySerializationUtils.writeVariableIntBytes(partEnd - begin, out);
        }
    }
}
