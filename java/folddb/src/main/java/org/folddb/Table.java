package org.folddb;

import java.util.Map;
import java.util.Objects;

/** A table of a store. Any number of threads use it at once. */
public final class Table implements AutoCloseable {
    static final int PUT = 0;
    static final int PUT_IF_ABSENT = 1;
    static final int FOLD = 2;
    static final int DELETE = 3;
    static final int DELETE_RANGE = 4;

    private final String name;
    private final Handle handle;

    Table(String name, long number) {
        this.name = name;
        handle = new Handle(this, number);
    }

    /**
     * Its name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Its rules, as they are given to {@link FoldDb#table(String, String)}.
     *
     * @return a line for each rule that is not the default
     */
    public String rules() {
        return Native.rules(handle.get());
    }

    private void write(int op, byte[] key, byte[] value) {
        Native.write(handle.get(), op, key, 0, key.length, value, 0, value.length);
    }

    /**
     * Makes the value of a key this one.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        write(PUT, key, value);
    }

    /**
     * Gives a key this value if it is absent: the first wins.
     *
     * @param key the key
     * @param value the value
     */
    public void putIfAbsent(byte[] key, byte[] value) {
        write(PUT_IF_ABSENT, key, value);
    }

    /**
     * Folds this operand onto the value of a key. It reads nothing.
     *
     * @param key the key
     * @param operand the operand
     */
    public void fold(byte[] key, byte[] operand) {
        write(FOLD, key, operand);
    }

    /**
     * The same with parts of arrays.
     *
     * @param key the array that has the key
     * @param keyOffset where it begins
     * @param keyLength how long it is
     * @param operand the array that has the operand
     * @param operandOffset where it begins
     * @param operandLength how long it is
     */
    public void fold(
            byte[] key,
            int keyOffset,
            int keyLength,
            byte[] operand,
            int operandOffset,
            int operandLength) {
        Objects.checkFromIndexSize(keyOffset, keyLength, key.length);
        Objects.checkFromIndexSize(operandOffset, operandLength, operand.length);
        Native.write(
                handle.get(), FOLD, key, keyOffset, keyLength, operand, operandOffset, operandLength);
    }

    /**
     * Makes a key absent.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        Native.write(handle.get(), DELETE, key, 0, key.length, null, 0, 0);
    }

    /**
     * Makes all keys from one on and below another, in the order of the table, absent.
     *
     * @param from the first key
     * @param to the key after the last
     */
    public void deleteRange(byte[] from, byte[] to) {
        Native.deleteRange(handle.get(), from, to);
    }

    /**
     * Makes all keys that begin with these bytes absent.
     *
     * @param prefix how they begin
     */
    public void deletePrefix(byte[] prefix) {
        Native.deletePrefix(handle.get(), prefix);
    }

    /**
     * The value of a key.
     *
     * @param key the key
     * @return its value; null where it is absent
     */
    public byte[] get(byte[] key) {
        return Native.get(handle.get(), 0, key, 0, key.length);
    }

    /**
     * The value of a key, which is a part of an array.
     *
     * @param key the array that has the key
     * @param offset where it begins
     * @param length how long it is
     * @return its value; null where it is absent
     */
    public byte[] get(byte[] key, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, key.length);
        return Native.get(handle.get(), 0, key, offset, length);
    }

    /**
     * The value of a key, which is deleted in the same moment. Of several threads that take one
     * value, one gets it, and what is written meanwhile is in that value or stays. An absent key is
     * only read.
     *
     * @param key the key
     * @return its value; null where it is absent
     * @throws FoldDbException also Conflict, if others wrote to the key in each of 1,000 tries
     */
    public byte[] take(byte[] key) {
        return Native.take(handle.get(), key);
    }

    /**
     * The value of a key as a snapshot sees it.
     *
     * @param at the snapshot
     * @param key the key
     * @return its value; null where it is absent
     */
    public byte[] get(Snapshot at, byte[] key) {
        return Native.get(handle.get(), number(at), key, 0, key.length);
    }

    /**
     * The values of many keys in one call.
     *
     * @param keys the keys, in any order
     * @return their values, each null where its key is absent
     */
    public byte[][] getMany(byte[]... keys) {
        return Native.getMany(handle.get(), 0, keys);
    }

    /**
     * The values of many keys as a snapshot sees them.
     *
     * @param at the snapshot
     * @param keys the keys, in any order
     * @return their values, each null where its key is absent
     */
    public byte[][] getMany(Snapshot at, byte[]... keys) {
        return Native.getMany(handle.get(), number(at), keys);
    }

    /** The number of a snapshot that must not be over: zero would mean the table as it is now. */
    static long number(Snapshot at) {
        long number = at.handle();
        if (number == 0) {
            throw new FoldDbException("Closed", "this snapshot is closed", "take another one");
        }
        return number;
    }

    /**
     * A scan of all of the table, to be narrowed.
     *
     * @return the scan
     */
    public Scan scan() {
        return new Scan(this);
    }

    /** Merges all runs of the table into one, before it returns. */
    public void compact() {
        Native.compact(handle.get());
    }

    /**
     * The figures of the table, by their names in Rust, such as {@code records}.
     *
     * @return the figures
     */
    public Map<String, Double> stats() {
        return FoldDb.figures(Native.tableStats(handle.get()));
    }

    long handle() {
        return handle.get();
    }

    /** Ends this object; the table itself remains. */
    @Override
    public void close() {
        handle.release();
    }
}
