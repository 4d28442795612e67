package org.folddb.flink;

import java.io.IOException;

/** Makes the value that a snapshot writes of the stored one; null leaves the row out. */
interface RowTransform {
    byte[] apply(byte[] value) throws IOException;

    /** This one, and then another one; either may be null. */
    static RowTransform both(RowTransform first, RowTransform then) {
        if (first == null || then == null) {
            return first == null ? then : first;
        }
        return value -> {
            byte[] between = first.apply(value);
            return between == null ? null : then.apply(between);
        };
    }
}
