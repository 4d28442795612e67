package org.folddb.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.ttl.TtlAwareSerializer;
import org.apache.flink.runtime.state.ttl.TtlTimeProvider;
import org.apache.flink.util.FlinkRuntimeException;

/** Serialized values in a row, one after the other, with a comma between them. */
final class Operands {
    /** What makes one value of two. */
    interface Combine<V> {
        V combine(V earlier, V later) throws Exception;
    }

    private Operands() {}

    /**
     * The value of a row of operands: they are combined from the left, in the order in which they
     * were added, so that the function sees the same calls as if each had been combined when it was
     * added.
     */
    static <V> V fold(
            DataInputDeserializer in, TypeSerializer<V> serializer, Combine<V> combine, int[] count)
            throws IOException {
        V value = serializer.deserialize(in);
        int found = 1;
        while (in.available() > 0) {
            in.readByte(); // the comma
            V next = serializer.deserialize(in);
            try {
                value = value == null ? next : combine.combine(value, next);
            } catch (Exception failure) {
                throw new FlinkRuntimeException(
                        "the function of a state has failed on a value that was added earlier", failure);
            }
            found++;
        }
        count[0] = found;
        return value;
    }

    /** Migrates each of them. */
    static byte[] migrate(
            byte[] stored,
            TtlAwareSerializer<?, ?> before,
            TtlAwareSerializer<?, ?> now,
            TtlTimeProvider time)
            throws IOException {
        DataInputDeserializer from = new DataInputDeserializer(stored);
        DataOutputSerializer to = new DataOutputSerializer(stored.length + 16);
        while (from.available() > 0) {
            AbstractState.migrateOne(from, to, before, now, time);
            if (from.available() > 0) {
                to.writeByte(from.readByte());
            }
        }
        return to.getCopyOfBuffer();
    }

    /** The elements of a row. */
    static <T> List<T> elements(byte[] stored, TypeSerializer<T> serializer) throws IOException {
        DataInputDeserializer in = new DataInputDeserializer(stored);
        List<T> found = new ArrayList<>();
        T next;
        while ((next = ListDelimitedSerializer.deserializeNextElement(in, serializer)) != null) {
            found.add(next);
        }
        return found;
    }
}
