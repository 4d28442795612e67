package org.folddb.flink;

import java.io.IOException;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.folddb.FoldDb;
import org.folddb.Rows;
import org.folddb.Table;

/**
 * Moves the rows of a state into a table of another fold. What other backends wrote, and what was
 * folded in Java before, becomes values of a native fold; and values of a native fold become
 * accumulators where a job no longer has that function.
 *
 * <p>The former table stays in the store, empty: a snapshot that is being written may read it.
 */
final class Relayout {
    /** After every key: the first byte of a key, of its key group, is less. */
    private static final byte[] END = {(byte) 0xff};

    private Relayout() {}

    /** One value of one stored in the former table. */
    private interface Change {
        byte[] apply(byte[] stored) throws IOException;
    }

    /** Makes the rows values of a native fold. */
    static void toFold(FoldDb db, StateTable state, FoldAggregate<?, ?> function) throws IOException {
        DataInputDeserializer in = new DataInputDeserializer();
        int[] count = new int[1];
        move(db, state, function.spec(), stored -> {
            in.setBuffer(stored);
            byte[] value =
                    Operands.fold(in, FoldValueSerializer.INSTANCE, function::merge, count).bytes;
            return value.length == 0 && !function.fold.hasEmptyValue() ? null : value;
        });
        state.hasOperands = false;
    }

    /** Makes the rows accumulators, to which others may be appended. */
    static void toOperands(FoldDb db, StateTable state) throws IOException {
        move(db, state, null, NativeFold::framed);
    }

    private static void move(FoldDb db, StateTable state, String spec, Change change)
            throws IOException {
        Table former = state.table();
        String rules = StateTable.rulesOf(spec, StateTable.compressionOf(former));
        Table next = db.createTable(StateTable.nextName(db), rules);
        try (Rows rows = state.rows(false)) {
            state.become(next, spec);
            while (rows.next()) {
                byte[] value = change.apply(rows.value());
                if (value != null) {
                    state.put(rows.key(), value);
                }
            }
        }
        state.deleteAll(former, END);
    }
}
