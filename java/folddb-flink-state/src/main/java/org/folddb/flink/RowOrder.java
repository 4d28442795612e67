package org.folddb.flink;

import java.io.IOException;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;

/**
 * The order of the parts of a row's key. Map states have the key in the map at the end of either.
 *
 * <pre>
 *   KEY_FIRST         key group, key, namespace     as in canonical savepoints
 *   NAMESPACE_FIRST   key group, namespace, key     the rows of a window lie together
 * </pre>
 */
enum RowOrder {
    KEY_FIRST,
    NAMESPACE_FIRST;

    /** Its number in checkpoints. */
    int number() {
        return this == KEY_FIRST ? 0 : 1;
    }

    static RowOrder numbered(int number) throws IOException {
        for (RowOrder order : values()) {
            if (order.number() == number) {
                return order;
            }
        }
        throw new IOException("a checkpoint has rows in the order " + number + ", which is not known here");
    }

    /** That of a new table. With one namespace both are the same order, and need no translation. */
    static RowOrder of(RegisteredKeyValueStateBackendMetaInfo<?, ?> meta) {
        return meta.getNamespaceSerializer() instanceof VoidNamespaceSerializer
                ? KEY_FIRST
                : NAMESPACE_FIRST;
    }

    /** How many bytes each namespace takes; -1 where that is not known, or differs. */
    static int lengthOf(TypeSerializer<?> namespaces) {
        if (namespaces instanceof TimeWindow.Serializer) {
            return 2 * Long.BYTES; // begin and end; it says 0 itself
        }
        return namespaces.getLength() > 0 ? namespaces.getLength() : -1;
    }
}
