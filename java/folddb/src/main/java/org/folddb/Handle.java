package org.folddb;

import java.lang.ref.Cleaner;

/** The number of a native object, which is released once: by hand, or after its last use. */
final class Handle {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Number number;
    private final Cleaner.Cleanable cleanable;

    Handle(Object owner, long value) {
        number = new Number(value);
        cleanable = CLEANER.register(owner, number);
    }

    /** The number; zero where it is over, which the native half reports. */
    long get() {
        return number.value;
    }

    /** Gives the number to a caller who ends it otherwise. */
    long take() {
        return number.take();
    }

    void release() {
        cleanable.clean();
    }

    private static final class Number implements Runnable {
        private volatile long value;

        Number(long value) {
            this.value = value;
        }

        synchronized long take() {
            long taken = value;
            value = 0;
            return taken;
        }

        @Override
        public void run() {
            long taken = take();
            if (taken != 0) {
                Native.release(taken);
            }
        }
    }
}
