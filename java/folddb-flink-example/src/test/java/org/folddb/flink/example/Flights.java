package org.folddb.flink.example;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** The flights of the samples, several times: each pass is of other days. */
final class Flights {
    static final int PASSES = 3;
    private static final long PASS_MS = 14 * 86_400_000L;
    private static final List<Flight> ONCE = once();

    private Flights() {}

    private static List<Flight> once() {
        try {
            return Flight.read(Path.of("..", "..", "samples", "flights-2013-01-first-days.csv.gz"));
        } catch (IOException failure) {
            throw new IllegalStateException("the flights cannot be read", failure);
        }
    }

    static int count() {
        return PASSES * ONCE.size();
    }

    static Flight get(int number) {
        Flight once = ONCE.get(number % ONCE.size());
        Flight flight = new Flight();
        flight.time = once.time + number / ONCE.size() * PASS_MS;
        flight.carrier = once.carrier;
        flight.origin = once.origin;
        flight.dest = once.dest;
        flight.tail = once.tail;
        flight.delay = once.delay;
        return flight;
    }
}
