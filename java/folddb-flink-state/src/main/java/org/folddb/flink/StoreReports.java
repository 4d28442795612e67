package org.folddb.flink;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.folddb.FoldDb;
import org.folddb.FoldDbException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the figures of a store and the advice of its doctor into the log of the task manager, again
 * and again while a job runs, so that whoever has only the logs sees what is wrong.
 */
final class StoreReports implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StoreReports.class);

    private final FoldDb db;
    private final Consumer<String> log;
    private final ScheduledExecutorService clock;

    private StoreReports(FoldDb db, Consumer<String> log) {
        this.db = db;
        this.log = log;
        this.clock =
                Executors.newSingleThreadScheduledExecutor(
                        task -> {
                            Thread thread = new Thread(task, "folddb-reports " + db.path().getFileName());
                            thread.setDaemon(true);
                            return thread;
                        });
    }

    /** Reports in the log, first after one interval; none where the interval is zero. */
    static StoreReports start(FoldDb db, Duration interval) {
        return interval.isZero() ? null : start(db, interval, LOG::info);
    }

    static StoreReports start(FoldDb db, Duration interval, Consumer<String> log) {
        StoreReports reports = new StoreReports(db, log);
        long nanos = interval.toNanos();
        reports.clock.scheduleWithFixedDelay(reports::report, nanos, nanos, TimeUnit.NANOSECONDS);
        return reports;
    }

    private void report() {
        try {
            log.accept(textOf(db));
        } catch (FoldDbException failure) {
            if (failure.kind() != FoldDbException.Kind.Closed) { // else the task ends
                LOG.warn("The FoldDB store {} cannot be reported on.", db.path(), failure);
            }
        } catch (RuntimeException failure) {
            LOG.warn("The FoldDB store {} cannot be reported on.", db.path(), failure);
        }
    }

    /** What is to be said of a store, a line for its figures and then the advice. */
    static String textOf(FoldDb db) {
        Map<String, Double> figures = db.stats();
        List<String> advice = db.doctor();
        figures.values().removeIf(figure -> figure == 0);
        StringBuilder text = new StringBuilder();
        text.append("The FoldDB store ").append(db.path()).append(" has ").append(figures).append('.');
        if (advice.isEmpty()) {
            text.append("\nNothing is wrong with it.");
        }
        for (String each : advice) {
            text.append('\n').append(each);
        }
        return text.toString();
    }

    /** A report that is being made may still be written. */
    @Override
    public void close() {
        clock.shutdownNow();
    }
}
