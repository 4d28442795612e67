package org.folddb.flink;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateSnapshotTransformer.StateSnapshotTransformFactory;
import org.folddb.FoldDb;
import org.folddb.Rows;
import org.folddb.Scan;
import org.folddb.Snapshot;
import org.folddb.Table;

/**
 * The table of a state, and what is known of it.
 *
 * <pre>
 *   key     key group (1 or 2 bytes), then key and namespace in the order of {@link RowOrder}, and for
 *           map states the key in the map
 *   value   a value; a list, or operands of a reducing or aggregating state: one after the other,
 *           with a comma between them; or the value of a native fold
 * </pre>
 *
 * These are the rows of Flink's canonical savepoints, save for the order of the key; for operands,
 * which become one value there; and for values of native folds, which have their length before them
 * there.
 */
final class StateTable {
    private static final String COMPRESSION = "compression=";
    private static final String FOLD = "fold=";
    private static final String APPEND = "append:,";

    private final WriteBuffer writes;
    private Table table;

    /** The native fold of the values; null where values, lists or operands are appended. */
    private String spec;

    final RowOrder order;

    /** What reads and clears windows that fire; null where rows of a window do not lie together. */
    private final FiringWindow firing;

    RegisteredKeyValueStateBackendMetaInfo<?, ?> meta;
    StateSnapshotTransformFactory<?> transform = StateSnapshotTransformFactory.noTransform();

    /** The state as it runs; null where the job has not asked for it since it was restored. */
    AbstractState<?, ?, ?> state;

    /** Whether a row may have several operands, which canonical snapshots must make one value of. */
    boolean hasOperands;

    StateTable(
            Table table,
            WriteBuffer writes,
            RegisteredKeyValueStateBackendMetaInfo<?, ?> meta,
            RowOrder order,
            int keyGroupBytes) {
        this.writes = writes;
        this.order = order;
        this.meta = meta;
        this.firing = firingOf(keyGroupBytes);
        become(table, specOf(table));
    }

    /** Maps clear all of their rows of a key at once as it is. */
    private FiringWindow firingOf(int keyGroupBytes) {
        int length = RowOrder.lengthOf(meta.getNamespaceSerializer());
        return order == RowOrder.KEY_FIRST || meta.getStateType() == StateDescriptor.Type.MAP || length < 0
                ? null
                : new FiringWindow(writes, keyGroupBytes + length);
    }

    /** The rules of a table with a native fold, or, without one, to which is appended. */
    static String rulesOf(String spec, String compression) {
        return COMPRESSION
                + compression.toLowerCase(Locale.ROOT)
                + "\n"
                + FOLD
                + (spec == null ? APPEND : spec);
    }

    /** The native fold of a table; null where it is appended to. */
    static String specOf(Table table) {
        String fold = ruleOf(table, FOLD);
        return APPEND.equals(fold) ? null : fold;
    }

    /** How the rows of a table are compressed. */
    static String compressionOf(Table table) {
        String compression = ruleOf(table, COMPRESSION);
        return compression == null ? FoldDbOptions.Compression.NONE.name() : compression;
    }

    private static String ruleOf(Table table, String name) {
        for (String rule : table.rules().split("\n")) {
            if (rule.startsWith(name)) {
                return rule.substring(name.length());
            }
        }
        return null;
    }

    /** A name that no table has: none is ever dropped. Names of states may have any letters. */
    static String nextName(FoldDb db) {
        return "s" + db.tables().size();
    }

    Table table() {
        return table;
    }

    String spec() {
        return spec;
    }

    /** Goes on with another table; rows of the former one must be moved. */
    void become(Table next, String nextSpec) {
        table = next;
        spec = nextSpec;
        state = null;
    }

    /** Deletes the rows of a former table. */
    void deleteAll(Table former, byte[] end) {
        writes.deleteRange(former, new byte[0], end);
    }

    byte[] get(byte[] key) {
        if (firing == null) {
            return stored(key);
        }
        synchronized (writes) {
            firing.prepare(table, key);
            return present(key);
        }
    }

    /** As {@link #get}, of another thread. */
    byte[] query(byte[] key) {
        synchronized (writes) {
            return present(key);
        }
    }

    private byte[] present(byte[] key) {
        return firing != null && firing.covers(key) ? firing.valueOf(key) : stored(key);
    }

    private byte[] stored(byte[] key) {
        writes.flushFor(table, key);
        return table.get(key);
    }

    void put(byte[] key, byte[] value) {
        noteWrite(key);
        writes.put(table, key, value);
    }

    void append(byte[] key, byte[] operand) {
        noteWrite(key);
        writes.append(table, key, operand);
    }

    private void noteWrite(byte[] key) {
        if (firing != null) {
            synchronized (writes) {
                firing.noteWrite(key);
            }
        }
    }

    void delete(byte[] key) {
        if (firing == null) {
            writes.delete(table, key);
            return;
        }
        synchronized (writes) {
            firing.prepare(table, key);
            if (firing.covers(key)) {
                firing.clear(key);
            } else {
                firing.noteClear();
                writes.delete(table, key);
            }
        }
    }

    void deletePrefix(byte[] prefix) {
        writes.deleteRange(table, prefix, endOf(prefix));
    }

    boolean hasPrefix(byte[] prefix) {
        return !rowsOf(prefix, null, 1, true).isEmpty();
    }

    /** At most so many rows of a prefix, after the key {@code after} where it is not null. */
    List<byte[][]> rowsOf(byte[] prefix, byte[] after, int limit, boolean isKeysOnly) {
        writes.flush();
        Scan scan = table.scan().before(endOf(prefix)).limit(limit);
        scan = after == null ? scan.from(prefix) : scan.after(after);
        List<byte[][]> found = new ArrayList<>();
        try (Rows rows = (isKeysOnly ? scan.keysOnly() : scan).rows()) {
            while (rows.next()) {
                found.add(new byte[][] {rows.key(), rows.value()});
            }
        }
        return found;
    }

    /** The store as it is now, with all that was written. */
    Snapshot snapshot(FoldDb db) {
        writes.flush();
        return db.snapshot();
    }

    Rows rows(boolean isKeysOnly) {
        writes.flush();
        Scan scan = table.scan();
        return (isKeysOnly ? scan.keysOnly() : scan).rows();
    }

    /** The first key after all that begin so: the first byte, of a key group, is below 0xff. */
    static byte[] endOf(byte[] prefix) {
        int last = prefix.length - 1;
        while (prefix[last] == (byte) 0xff) {
            last--;
        }
        byte[] end = Arrays.copyOf(prefix, last + 1);
        end[last]++;
        return end;
    }
}
