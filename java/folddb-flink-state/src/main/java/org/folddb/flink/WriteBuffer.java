package org.folddb.flink;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.folddb.Batch;
import org.folddb.Durability;
import org.folddb.FoldDb;
import org.folddb.Table;

/**
 * Writes that wait, so that many cross into the native half at once. A read of a key flushes them
 * only if some of them may be of that key, and a scan always. Queries from other threads read, too,
 * so that its methods exclude one another.
 */
final class WriteBuffer {
    private static final int OPS_MAX = 256;
    private static final int BYTES_MAX = 1 << 20;

    /** With as many writes as wait at most, one read in 64 finds its bit set by another key. */
    private static final int FILTER_BITS = 64 * OPS_MAX;

    private final Batch batch;

    /** A bit for the hash of each key that was written. */
    private final long[] filter = new long[FILTER_BITS / Long.SIZE];

    /** Whether a range waits, which may have any key. */
    private boolean hasRange;

    /** Windows whose clears wait before they come here. */
    private final List<FiringWindow> firing = new ArrayList<>();

    WriteBuffer(FoldDb db) {
        batch = db.batch();
    }

    synchronized void put(Table table, byte[] key, byte[] value) {
        batch.put(table, key, value);
        note(table, key);
    }

    synchronized void append(Table table, byte[] key, byte[] operand) {
        batch.fold(table, key, operand);
        note(table, key);
    }

    synchronized void delete(Table table, byte[] key) {
        batch.delete(table, key);
        note(table, key);
    }

    synchronized void deleteRange(Table table, byte[] from, byte[] to) {
        batch.deleteRange(table, from, to);
        hasRange = true;
        flushIfFull();
    }

    /** The bit of a key of a table: states of one key are often used together. */
    private static int bitOf(Table table, byte[] key) {
        long hash = (Xxh3.hash(key) ^ table.name().hashCode()) * 0x9E3779B185EBCA87L;
        return (int) (hash >>> Long.SIZE - Integer.numberOfTrailingZeros(FILTER_BITS));
    }

    private void note(Table table, byte[] key) {
        int bit = bitOf(table, key);
        filter[bit / Long.SIZE] |= 1L << bit;
        flushIfFull();
    }

    private void flushIfFull() {
        if (batch.size() >= OPS_MAX || batch.bytes() >= BYTES_MAX) {
            commit();
        }
    }

    /** Flushes if a write of this key of a table may wait. */
    synchronized void flushFor(Table table, byte[] key) {
        int bit = bitOf(table, key);
        if (hasRange || (filter[bit / Long.SIZE] & 1L << bit) != 0) {
            commit();
        }
    }

    /** How many writes wait. */
    synchronized int size() {
        return batch.size();
    }

    synchronized void waitFor(FiringWindow window) {
        firing.add(window);
    }

    synchronized void waitNoMore(FiringWindow window) {
        firing.remove(window);
    }

    /** Commits all that was written, and what waits before it comes here. */
    synchronized void flush() {
        List.copyOf(firing).forEach(FiringWindow::settle);
        commit();
    }

    synchronized void commit() {
        if (batch.size() > 0) {
            // The batch is empty afterwards, also where this fails.
            hasRange = false;
            Arrays.fill(filter, 0);
            batch.commit(Durability.BUFFERED);
        }
    }
}
