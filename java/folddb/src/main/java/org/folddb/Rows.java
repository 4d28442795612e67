package org.folddb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The rows of a scan. One thread uses them at a time.
 *
 * <pre>{@code
 * try (Rows rows = table.scan().prefix(prefix).rows()) {
 *     while (rows.next()) {
 *         use(rows.key(), rows.value());
 *     }
 * }
 * }</pre>
 */
public final class Rows implements AutoCloseable {
    private static final int HEADER = 8;

    /** A buffer that no scan of this thread has: allocating one takes as long as a short scan. */
    private static final ThreadLocal<ByteBuffer> SPARE = new ThreadLocal<>();

    private static final int SPARE_MAX = 1 << 20;

    private final Handle handle;
    private ByteBuffer buffer;

    /** The bytes of rows in the buffer. */
    private int filled;

    /** Where the present row begins, and the next one. */
    private int row = -1;

    private int next;
    private boolean isAtEnd;

    Rows(long number, int bufferBytes) {
        handle = new Handle(this, number);
        buffer = spare(bufferBytes);
    }

    private static ByteBuffer spare(int bytes) {
        ByteBuffer spare = SPARE.get();
        if (spare != null && spare.capacity() == bytes) {
            SPARE.remove();
            return spare;
        }
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Ends the scan in the native half, and gives the buffer back. */
    private void end() {
        isAtEnd = true;
        filled = 0;
        next = 0;
        row = -1;
        handle.release();
        if (buffer != null && buffer.capacity() <= SPARE_MAX) {
            SPARE.set(buffer);
        }
        buffer = null;
    }

    /**
     * Goes to the next row.
     *
     * @return whether there is one
     */
    public boolean next() {
        if (next >= filled && !fill()) {
            row = -1;
            return false;
        }
        row = next;
        next = row + HEADER + buffer.getInt(row) + buffer.getInt(row + 4);
        return true;
    }

    private boolean fill() {
        if (isAtEnd) {
            return false;
        }
        int bytes = Native.rows(handle.get(), buffer);
        if (bytes < 0) {
            buffer = ByteBuffer.allocateDirect(-bytes).order(ByteOrder.LITTLE_ENDIAN);
            bytes = Native.rows(handle.get(), buffer);
        }
        filled = bytes;
        next = 0;
        if (bytes == 0) {
            end();
        }
        return bytes > 0;
    }

    /**
     * The key of the present row.
     *
     * @return a copy
     */
    public byte[] key() {
        return copy(here() + HEADER, buffer.getInt(row));
    }

    /**
     * The value of the present row; empty in a scan of keys only.
     *
     * @return a copy
     */
    public byte[] value() {
        return copy(here() + HEADER + buffer.getInt(row), buffer.getInt(row + 4));
    }

    private int here() {
        if (row < 0) {
            throw new FoldDbException("InvalidInput", "the rows are at no row", "call next first");
        }
        return row;
    }

    private byte[] copy(int at, int length) {
        byte[] bytes = new byte[length];
        ByteBuffer view = buffer.duplicate();
        view.position(at);
        view.get(bytes);
        return bytes;
    }

    /** Ends the scan; a second time does nothing. */
    @Override
    public void close() {
        end();
    }
}
