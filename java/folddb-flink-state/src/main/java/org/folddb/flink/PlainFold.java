package org.folddb.flink;

import java.io.Serializable;

/**
 * A fold in plain Java. It makes the same bytes as the native fold of its name, whose layouts are
 * drawn in FORMAT.md; a test compares them.
 */
interface PlainFold extends Serializable {
    /** The name of the native fold. */
    String spec();

    /** One value of two, neither of which changes; it may be one of them. */
    byte[] fold(byte[] earlier, byte[] later);

    /** The same, where the earlier value may be changed and be the result. */
    default byte[] foldInto(byte[] earlier, byte[] later) {
        return fold(earlier, later);
    }

    /** Whether no bytes are a value of this fold, which says that nothing was seen. */
    boolean hasEmptyValue();
}
