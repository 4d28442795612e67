package org.folddb.flink.example;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/** A flight of the samples. */
public class Flight implements Serializable {
    private static final long serialVersionUID = 1L;

    /** When it should have left, in milliseconds; local time as if it were UTC. */
    public long time;

    /** The airline. */
    public String carrier;

    /** The airport that it left. */
    public String origin;

    /** Where it went. */
    public String dest;

    /** The number on the tail of the aircraft; null where it is not known. */
    public String tail;

    /** How many minutes it left late; NaN where it did not leave. */
    public double delay;

    /** For serializers. */
    public Flight() {}

    /**
     * Whether it left.
     *
     * @return false where it was canceled
     */
    public boolean hasLeft() {
        return !Double.isNaN(delay);
    }

    /**
     * The flights of a file of the samples.
     *
     * @param file the file, packed CSV with a header
     * @return its flights, in its order: by day, but not by the time of the day
     * @throws IOException where it cannot be read
     */
    public static List<Flight> read(Path file) throws IOException {
        List<Flight> flights = new ArrayList<>();
        try (BufferedReader in =
                new BufferedReader(
                        new InputStreamReader(
                                new GZIPInputStream(Files.newInputStream(file)),
                                StandardCharsets.UTF_8))) {
            in.readLine(); // the header
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                flights.add(ofRow(line.split(",")));
            }
        }
        return flights;
    }

    private static Flight ofRow(String[] row) {
        LocalDate day =
                LocalDate.of(Integer.parseInt(row[0]), Integer.parseInt(row[1]), Integer.parseInt(row[2]));
        Flight flight = new Flight();
        flight.time =
                day.toEpochDay() * 86_400_000
                        + Integer.parseInt(row[16]) * 3_600_000L
                        + Integer.parseInt(row[17]) * 60_000L;
        flight.carrier = row[9];
        flight.origin = row[12];
        flight.dest = row[13];
        flight.tail = row[11].equals("NA") ? null : row[11];
        flight.delay = row[5].equals("NA") ? Double.NaN : Double.parseDouble(row[5]);
        return flight;
    }
}
