package org.folddb.flink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyValueStateIterator;

/** The rows of all states: key group after key group, and in each state after state. */
final class MergedRows implements KeyValueStateIterator {
    private final List<SnapshotRows> all;
    private final int keyGroupBytes;
    private final PriorityQueue<SnapshotRows> others;
    private SnapshotRows current;
    private boolean isNewKeyGroup = true;
    private boolean isNewState = true;

    MergedRows(List<SnapshotRows> all, int keyGroupBytes) throws IOException {
        this.all = new ArrayList<>(all);
        this.keyGroupBytes = keyGroupBytes;
        this.others =
                new PriorityQueue<>(
                        Comparator.comparingInt(this::groupOf).thenComparingInt(rows -> rows.state));
        for (SnapshotRows rows : all) {
            if (rows.next()) {
                others.add(rows);
            }
        }
        current = others.poll();
    }

    private int groupOf(SnapshotRows rows) {
        return CompositeKeySerializationUtils.extractKeyGroup(keyGroupBytes, rows.key);
    }

    @Override
    public void next() throws IOException {
        int group = groupOf(current);
        int state = current.state;
        boolean isThere = current.next();
        if (!isThere || groupOf(current) != group) {
            if (isThere) {
                others.add(current);
            }
            current = others.poll();
        }
        isNewKeyGroup = current != null && groupOf(current) != group;
        isNewState = current != null && current.state != state;
    }

    @Override
    public int keyGroup() {
        return groupOf(current);
    }

    @Override
    public byte[] key() {
        return current.key;
    }

    @Override
    public byte[] value() {
        return current.value;
    }

    @Override
    public int kvStateId() {
        return current.state;
    }

    @Override
    public boolean isNewKeyValueState() {
        return isNewState;
    }

    @Override
    public boolean isNewKeyGroup() {
        return isNewKeyGroup;
    }

    @Override
    public boolean isValid() {
        return current != null;
    }

    @Override
    public void close() {
        all.forEach(SnapshotRows::close);
    }
}
