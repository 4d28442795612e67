package org.folddb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Writes to any tables of a store, which are committed together. They wait in one direct buffer, so
 * that a commit crosses into the native half once. One thread uses it at a time.
 */
public final class Batch {
    private static final int HEADER = 16;
    private static final int BYTES_MAX = 1 << 30;

    private final FoldDb db;
    private final List<Table> tables = new ArrayList<>();
    private ByteBuffer buffer = ByteBuffer.allocateDirect(4 << 10).order(ByteOrder.LITTLE_ENDIAN);
    private int ops;

    /** The last table, and its number: most writes go to one. */
    private Table last;

    private int lastNumber;

    Batch(FoldDb db) {
        this.db = db;
    }

    /**
     * Makes the value of a key this one, with the batch.
     *
     * @param table the table
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public Batch put(Table table, byte[] key, byte[] value) {
        return add(table, Table.PUT, key, 0, key.length, value, 0, value.length);
    }

    /**
     * Gives a key this value if it is absent, with the batch.
     *
     * @param table the table
     * @param key the key
     * @param value the value
     * @return this batch
     */
    public Batch putIfAbsent(Table table, byte[] key, byte[] value) {
        return add(table, Table.PUT_IF_ABSENT, key, 0, key.length, value, 0, value.length);
    }

    /**
     * Folds this operand onto the value of a key, with the batch.
     *
     * @param table the table
     * @param key the key
     * @param operand the operand
     * @return this batch
     */
    public Batch fold(Table table, byte[] key, byte[] operand) {
        return add(table, Table.FOLD, key, 0, key.length, operand, 0, operand.length);
    }

    /**
     * The same with parts of arrays.
     *
     * @param table the table
     * @param key the array that has the key
     * @param keyOffset where it begins
     * @param keyLength how long it is
     * @param operand the array that has the operand
     * @param operandOffset where it begins
     * @param operandLength how long it is
     * @return this batch
     */
    public Batch fold(
            Table table,
            byte[] key,
            int keyOffset,
            int keyLength,
            byte[] operand,
            int operandOffset,
            int operandLength) {
        Objects.checkFromIndexSize(keyOffset, keyLength, key.length);
        Objects.checkFromIndexSize(operandOffset, operandLength, operand.length);
        return add(
                table, Table.FOLD, key, keyOffset, keyLength, operand, operandOffset, operandLength);
    }

    /**
     * Makes a key absent, with the batch.
     *
     * @param table the table
     * @param key the key
     * @return this batch
     */
    public Batch delete(Table table, byte[] key) {
        return add(table, Table.DELETE, key, 0, key.length, key, 0, 0);
    }

    /**
     * Makes all keys from one on and below another absent, with the batch.
     *
     * @param table the table
     * @param from the first key
     * @param to the key after the last
     * @return this batch
     */
    public Batch deleteRange(Table table, byte[] from, byte[] to) {
        return add(table, Table.DELETE_RANGE, from, 0, from.length, to, 0, to.length);
    }

    private Batch add(
            Table table,
            int op,
            byte[] key,
            int keyOffset,
            int keyLength,
            byte[] value,
            int valueOffset,
            int valueLength) {
        int number = number(table);
        reserve((long) HEADER + keyLength + valueLength);
        buffer.putInt(op).putInt(number).putInt(keyLength).putInt(valueLength);
        buffer.put(key, keyOffset, keyLength).put(value, valueOffset, valueLength);
        ops++;
        return this;
    }

    private int number(Table table) {
        if (table == last) {
            return lastNumber;
        }
        int at = tables.indexOf(Objects.requireNonNull(table, "the table"));
        if (at < 0) {
            at = tables.size();
            tables.add(table);
        }
        last = table;
        lastNumber = at;
        return at;
    }

    private void reserve(long bytes) {
        if (bytes <= buffer.remaining()) {
            return;
        }
        long needed = buffer.position() + bytes;
        if (needed > BYTES_MAX) {
            throw new FoldDbException(
                    "InvalidInput",
                    "a batch of more than " + BYTES_MAX + " bytes",
                    "commit what there is first");
        }
        int size = (int) Math.min(Math.max(needed, 2L * buffer.capacity()), BYTES_MAX);
        ByteBuffer larger = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
        buffer.flip();
        larger.put(buffer);
        buffer = larger;
    }

    /**
     * How many writes it has.
     *
     * @return the number
     */
    public int size() {
        return ops;
    }

    /**
     * How many bytes its writes take.
     *
     * @return the bytes
     */
    public int bytes() {
        return buffer.position();
    }

    /** Forgets what was not committed. */
    public void clear() {
        buffer.clear();
        tables.clear();
        last = null;
        ops = 0;
    }

    /**
     * Commits all writes together, as durably as the options of the store say. The batch is empty
     * afterwards, also where this fails, and may be used again.
     */
    public void commit() {
        commit(db.durability());
    }

    /**
     * Commits all writes together. Otherwise as {@link #commit()}.
     *
     * @param durability when it is acknowledged
     */
    public void commit(Durability durability) {
        try {
            long[] numbers = new long[tables.size()];
            for (int at = 0; at < numbers.length; at++) {
                numbers[at] = tables.get(at).handle();
            }
            Native.commit(db.handle(), numbers, buffer, buffer.position(), durability.text);
        } finally {
            clear();
        }
    }
}
