package org.folddb.flink;

import java.util.Arrays;
import java.util.BitSet;
import org.folddb.Rows;

/** Rows that were read at once, to be looked up by their keys. */
final class LoadedRows {
    /** The keys and values, one after the other. */
    private byte[] bytes = new byte[1 << 12];

    /** Where the key and the value of each row begin; its value ends where the next key begins. */
    private int[] keys = new int[1 << 6];

    private int[] values = new int[1 << 6];
    private int[] hashes = new int[1 << 6];
    private int count;
    private int end;

    /** Numbers of rows plus one by the hashes of their keys; 0 where there is none. */
    private int[] slots;

    private final BitSet removed = new BitSet();
    private int live;

    /** Takes rows until they are of so many bytes; whether there may be more. */
    boolean fill(Rows rows, int bytesMax) {
        boolean isMore = false;
        while (!isMore && rows.next()) {
            add(rows.key(), rows.value());
            isMore = end >= bytesMax;
        }
        keys[count] = end;
        live = count;
        slots = new int[Integer.highestOneBit(Math.max(1, count)) << 2];
        for (int row = 0; row < count; row++) {
            int slot = hashes[row] & slots.length - 1;
            while (slots[slot] != 0) {
                slot = slot + 1 & slots.length - 1;
            }
            slots[slot] = row + 1;
        }
        return isMore;
    }

    private void add(byte[] key, byte[] value) {
        if (count + 1 == keys.length) { // one more for the end
            keys = Arrays.copyOf(keys, 2 * count + 2);
            values = Arrays.copyOf(values, 2 * count + 2);
            hashes = Arrays.copyOf(hashes, 2 * count + 2);
        }
        int needed = end + key.length + value.length;
        if (needed > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(needed, 2 * bytes.length));
        }
        keys[count] = end;
        values[count] = end + key.length;
        hashes[count] = hash(key);
        System.arraycopy(key, 0, bytes, end, key.length);
        System.arraycopy(value, 0, bytes, end + key.length, value.length);
        end = needed;
        count++;
    }

    private static int hash(byte[] key) {
        return (int) Xxh3.hash(key);
    }

    /** The number of the row of a key; -1 where it has none, or it was removed. */
    int find(byte[] key) {
        int hash = hash(key);
        for (int slot = hash & slots.length - 1; slots[slot] != 0; slot = slot + 1 & slots.length - 1) {
            int row = slots[slot] - 1;
            if (hashes[row] == hash
                    && Arrays.equals(bytes, keys[row], values[row], key, 0, key.length)) {
                return removed.get(row) ? -1 : row;
            }
        }
        return -1;
    }

    byte[] key(int row) {
        return Arrays.copyOfRange(bytes, keys[row], values[row]);
    }

    byte[] value(int row) {
        return Arrays.copyOfRange(bytes, values[row], keys[row + 1]);
    }

    void remove(int row) {
        removed.set(row);
        live--;
    }

    int count() {
        return count;
    }

    /** How many were not removed. */
    int live() {
        return live;
    }

    /** The numbers of those that were removed. */
    BitSet removed() {
        return removed;
    }
}
