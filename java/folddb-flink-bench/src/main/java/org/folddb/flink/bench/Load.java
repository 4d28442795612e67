package org.folddb.flink.bench;

import java.io.Serializable;

/**
 * How much of a workload there is: keys, records that each key gets in a window, on average and at
 * random, and windows, one after the other.
 */
record Load(Workload workload, long keys, long perKey, long windows) implements Serializable {
    long records() {
        return keys * perKey * windows;
    }

    /** One window of about so many records, to warm up with. */
    Load shortened(long records) {
        long fewer = Math.max(1, Math.min(keys, records / perKey));
        return new Load(workload, fewer, perKey, 1);
    }
}
