package org.folddb.flink;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.StateSnapshotTransformer;
import org.apache.flink.runtime.state.StateSnapshotTransformer.CollectionStateSnapshotTransformer;
import org.apache.flink.runtime.state.StateSnapshotTransformer.CollectionStateSnapshotTransformer.TransformStrategy;

/** How Flink's filters of a snapshot apply to the rows of lists and maps. */
final class SnapshotTransforms {
    /** A value of a map that is null. */
    private static final byte[] NULL = {1};

    private SnapshotTransforms() {}

    /** Filters each element, or finds the first one that stays, and keeps all from it on. */
    static <T> RowTransform ofList(StateSnapshotTransformer<T> each, TypeSerializer<T> serializer) {
        ListDelimitedSerializer lists = new ListDelimitedSerializer();
        DataInputDeserializer in = new DataInputDeserializer();
        boolean isFirstEnough =
                each instanceof CollectionStateSnapshotTransformer
                        && ((CollectionStateSnapshotTransformer<T>) each).getFilterStrategy()
                                == TransformStrategy.STOP_ON_FIRST_INCLUDED;
        return stored -> {
            in.setBuffer(stored);
            List<T> kept = new ArrayList<>();
            while (in.available() > 0) {
                int begin = in.getPosition();
                T element = each.filterOrTransform(
                        ListDelimitedSerializer.deserializeNextElement(in, serializer));
                if (element == null) {
                    continue;
                }
                if (isFirstEnough) {
                    return Arrays.copyOfRange(stored, begin, stored.length);
                }
                kept.add(element);
            }
            return kept.isEmpty() ? null : lists.serializeList(kept, serializer);
        };
    }

    /** Filters the value after the byte that says whether it is null. */
    static RowTransform ofMap(StateSnapshotTransformer<byte[]> each) {
        return stored -> {
            if (stored[0] != 0) {
                return stored;
            }
            byte[] value = Arrays.copyOfRange(stored, 1, stored.length);
            byte[] kept = each.filterOrTransform(value);
            if (kept == null) {
                return NULL;
            }
            if (kept == value) {
                return stored;
            }
            byte[] row = new byte[kept.length + 1];
            System.arraycopy(kept, 0, row, 1, kept.length);
            return row;
        };
    }
}
