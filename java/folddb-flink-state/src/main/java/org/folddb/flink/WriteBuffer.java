package org.folddb.flink;

import org.folddb.Batch;
import org.folddb.Durability;
import org.folddb.FoldDb;
import org.folddb.Table;

/**
 * Writes that wait, so that many cross into the native half at once. They are flushed before any
 * read. Queries from other threads read, too, so that its methods exclude one another.
 */
final class WriteBuffer {
    private static final int OPS_MAX = 256;
    private static final int BYTES_MAX = 1 << 20;

    private final Batch batch;

    WriteBuffer(FoldDb db) {
        batch = db.batch();
    }

    synchronized void put(Table table, byte[] key, byte[] value) {
        batch.put(table, key, value);
        flushIfFull();
    }

    synchronized void append(Table table, byte[] key, byte[] operand) {
        batch.fold(table, key, operand);
        flushIfFull();
    }

    synchronized void delete(Table table, byte[] key) {
        batch.delete(table, key);
        flushIfFull();
    }

    synchronized void deleteRange(Table table, byte[] from, byte[] to) {
        batch.deleteRange(table, from, to);
        flushIfFull();
    }

    private void flushIfFull() {
        if (batch.size() >= OPS_MAX || batch.bytes() >= BYTES_MAX) {
            flush();
        }
    }

    synchronized void flush() {
        if (batch.size() > 0) {
            batch.commit(Durability.BUFFERED);
        }
    }
}
