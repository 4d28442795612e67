package org.folddb.flink;

import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueStateSnapshot;
import org.folddb.Rows;

/** The rows of one state of a snapshot, in the order of key groups. */
abstract class SnapshotRows {
    /** The number of the state in the snapshot. */
    final int state;

    byte[] key;
    byte[] value;

    private SnapshotRows(int state) {
        this.state = state;
    }

    /** Goes to the next row; whether there is one. */
    abstract boolean next() throws IOException;

    void close() {}

    static SnapshotRows ofTable(
            int state, Rows rows, RowTransform keyTransform, RowTransform transform) {
        return new SnapshotRows(state) {
            @Override
            boolean next() throws IOException {
                while (rows.next()) {
                    value = transform == null ? rows.value() : transform.apply(rows.value());
                    if (value != null) {
                        key = keyTransform == null ? rows.key() : keyTransform.apply(rows.key());
                        return true;
                    }
                }
                return false;
            }

            @Override
            void close() {
                rows.close();
            }
        };
    }

    /** Timers are keys without values: the key group, and the timer. */
    static <T> SnapshotRows ofQueue(
            int state, HeapPriorityQueueStateSnapshot<T> queue, KeyGroupRange keyGroups, int groupBytes) {
        TypeSerializer<T> serializer = queue.getMetaInfo().getElementSerializer();
        DataOutputSerializer out = new DataOutputSerializer(64);
        return new SnapshotRows(state) {
            private final Iterator<Integer> groups = keyGroups.iterator();
            private Iterator<T> timers = Collections.emptyIterator();
            private int group;

            @Override
            boolean next() throws IOException {
                while (!timers.hasNext()) {
                    if (!groups.hasNext()) {
                        return false;
                    }
                    group = groups.next();
                    timers = queue.getIteratorForKeyGroup(group);
                }
                out.clear();
                CompositeKeySerializationUtils.writeKeyGroup(group, groupBytes, out);
                serializer.serialize(timers.next(), out);
                key = out.getCopyOfBuffer();
                value = new byte[0];
                return true;
            }
        };
    }
}
