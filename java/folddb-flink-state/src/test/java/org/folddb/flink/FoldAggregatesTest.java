package org.folddb.flink;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.BasicTypeInfo;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.ObjectArrayTypeInfo;
import org.apache.flink.api.java.typeutils.PojoTypeInfo;
import org.apache.flink.api.java.typeutils.TypeExtractor;
import org.apache.flink.util.InstantiationUtil;
import org.folddb.Durability;
import org.folddb.FoldDb;
import org.folddb.Options;
import org.folddb.Table;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The plain functions make the bytes of the native folds, and their results are right. */
class FoldAggregatesTest {
    private static final int KEYS = 60;

    @TempDir Path folder;
    private FoldDb db;

    @BeforeEach
    void open() {
        db = FoldDb.create(folder.resolve("store"), new Options().memoryBytes(8 << 20).durability(Durability.BUFFERED));
    }

    @AfterEach
    void close() {
        db.close();
    }

    /** Makes an input. */
    private interface Inputs<IN> {
        IN next(Random random);
    }

    private static byte[] bytesOf(int number) {
        return Integer.toString(number).getBytes(UTF_8);
    }

    /**
     * Folds the same inputs natively and in Java, one after the other and as pieces that are merged
     * at random, and compares the bytes; gives the inputs of each key.
     */
    private <IN> Map<Integer, List<IN>> compare(FoldAggregate<IN, ?> function, Inputs<IN> inputs) {
        Random random = new Random(function.spec().hashCode());
        Table table = db.createTable("t" + db.tables().size(), "fold=" + function.spec());
        assertEquals(function.spec(), StateTable.specOf(table), "the name is the one that the store has");
        Map<Integer, List<IN>> all = new HashMap<>();
        for (int key = 0; key < KEYS; key++) {
            List<IN> ofKey = new ArrayList<>();
            FoldValue added = function.createAccumulator();
            List<FoldValue> pieces = new ArrayList<>();
            int count = 1 + random.nextInt(key < 56 ? 30 : 2_000);
            for (int number = 0; number < count; number++) {
                IN input = inputs.next(random);
                ofKey.add(input);
                table.fold(bytesOf(key), function.operandOf(input));
                added = function.add(input, added);
                if (number == 0 || random.nextInt(4) == 0) {
                    pieces.add(function.createAccumulator());
                }
                int last = pieces.size() - 1;
                pieces.set(last, function.add(input, pieces.get(last)));
            }
            while (pieces.size() > 1) {
                int at = random.nextInt(pieces.size() - 1);
                pieces.set(at, function.merge(pieces.get(at), pieces.remove(at + 1)));
            }
            if (key % 10 == 0) {
                db.flush();
            }
            byte[] natively = table.get(bytesOf(key));
            assertArrayEquals(natively, added.bytes, function.spec() + " of " + ofKey);
            assertArrayEquals(natively, pieces.get(0).bytes, function.spec() + " merged of " + ofKey);
            all.put(key, ofKey);
        }
        return all;
    }

    private static <IN, OUT> OUT result(FoldAggregate<IN, OUT> function, List<IN> inputs) {
        FoldValue value = function.createAccumulator();
        for (IN input : inputs) {
            value = function.add(input, value);
        }
        return function.getResult(value);
    }

    /** Numbers of every size and kind. */
    private static double anyDouble(Random random) {
        double[] special = {
            0.0, -0.0, 1.0, -1.0, Double.MIN_VALUE, -Double.MIN_VALUE, Double.MIN_NORMAL, Double.MAX_VALUE,
            -Double.MAX_VALUE, 1e308, 1e-308, 0.1
        };
        switch (random.nextInt(6)) {
            case 0:
                return special[random.nextInt(special.length)];
            case 1:
                double any = Double.longBitsToDouble(random.nextLong());
                return Double.isFinite(any) ? any : 1.0;
            case 2:
                return random.nextGaussian() * 100;
            default:
                return random.nextInt(100) / 4.0;
        }
    }

    private static double anyDoubleOrNone(Random random) {
        double[] special = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY};
        return random.nextInt(300) == 0 ? special[random.nextInt(3)] : anyDouble(random);
    }

    private static long anyLong(Random random) {
        return random.nextInt(10) == 0 ? random.nextLong() : random.nextInt(1000) - 500;
    }

    @Test
    void wholeNumbers() {
        FoldAggregate<Long, Long> sum = FoldAggregates.sum(number -> number);
        FoldAggregate<Long, Long> min = FoldAggregates.min(number -> number);
        FoldAggregate<Long, Long> max = FoldAggregates.max(number -> number);
        compare(sum, FoldAggregatesTest::anyLong)
                .forEach((key, of) -> assertEquals(of.stream().mapToLong(n -> n).sum(), result(sum, of)));
        compare(min, FoldAggregatesTest::anyLong)
                .forEach((key, of) -> assertEquals(of.stream().mapToLong(n -> n).min().getAsLong(), result(min, of)));
        compare(max, FoldAggregatesTest::anyLong)
                .forEach((key, of) -> assertEquals(of.stream().mapToLong(n -> n).max().getAsLong(), result(max, of)));
        FoldAggregate<Long, Long> count = FoldAggregates.count();
        compare(count, FoldAggregatesTest::anyLong)
                .forEach((key, of) -> assertEquals(of.size(), result(count, of)));
        assertEquals(0, count.getResult(count.createAccumulator()));
    }

    @Test
    void doubles() {
        FoldAggregate<Double, Double> sum = FoldAggregates.sumDouble(number -> number);
        FoldAggregate<Double, Double> min = FoldAggregates.minDouble(number -> number);
        FoldAggregate<Double, Double> max = FoldAggregates.maxDouble(number -> number);
        compare(sum, FoldAggregatesTest::anyDouble)
                .forEach(
                        (key, of) -> {
                            BigDecimal exact =
                                    of.stream().map(BigDecimal::new).reduce(BigDecimal.ZERO, BigDecimal::add);
                            assertEquals(exact.doubleValue(), result(sum, of) + 0.0);
                        });
        compare(min, FoldAggregatesTest::anyDouble)
                .forEach((key, of) -> assertEquals(of.stream().min(Double::compare).get(), result(min, of)));
        compare(max, FoldAggregatesTest::anyDouble)
                .forEach((key, of) -> assertEquals(of.stream().max(Double::compare).get(), result(max, of)));
        for (FoldAggregate<Double, ?> each : List.of(sum, min, max)) {
            compare(each, FoldAggregatesTest::anyDoubleOrNone);
            compare(each, random -> random.nextBoolean() ? Double.NaN : -0.0);
        }
        assertEquals(1.0, result(sum, List.of(1e100, 1.0, -1e100)));
        assertEquals(2.0, result(min, List.of(Double.NaN, 2.0)));
        assertTrue(Double.isNaN(result(max, List.of(Double.NaN))));
    }

    @Test
    void statistics() {
        FoldAggregate<Double, Stats> function = FoldAggregates.stats(number -> number);
        compare(function, FoldAggregatesTest::anyDoubleOrNone);
        compare(function, FoldAggregatesTest::anyDouble).values().forEach(of -> check(result(function, of), of));
        compare(function, random -> random.nextInt(1000) / 8.0)
                .values()
                .forEach(of -> check(result(function, of), of));
        Stats huge = result(function, List.of(Double.MAX_VALUE, Double.MAX_VALUE));
        assertEquals(Double.POSITIVE_INFINITY, huge.sum);
        assertEquals(Double.MAX_VALUE, huge.mean);
        assertEquals(0, huge.variance);
        assertEquals(2, result(function, List.of(8.0, 8.0, 12.0, 8.0, 12.0, 12.0)).standardDeviation());
        assertEquals(0, function.getResult(function.createAccumulator()).count);
    }

    private static void check(Stats stats, List<Double> of) {
        BigDecimal count = BigDecimal.valueOf(of.size());
        BigDecimal sum = BigDecimal.ZERO;
        BigDecimal squares = BigDecimal.ZERO;
        for (double number : of) {
            sum = sum.add(new BigDecimal(number));
            squares = squares.add(new BigDecimal(number).pow(2));
        }
        assertEquals(of.size(), stats.count);
        assertEquals(sum.doubleValue(), stats.sum + 0.0);
        assertEquals(of.stream().min(Double::compare).get(), stats.min);
        assertEquals(of.stream().max(Double::compare).get(), stats.max);
        MathContext digits = new MathContext(40);
        double mean = sum.divide(count, digits).doubleValue();
        assertEquals(mean, stats.mean, 4 * Math.ulp(mean));
        double variance =
                squares.multiply(count).subtract(sum.pow(2)).divide(count.pow(2), digits).doubleValue();
        if (!Double.isInfinite(variance)) {
            assertEquals(variance, stats.variance, 4 * Math.ulp(variance));
        }
    }

    @Test
    void distinctMembers() {
        for (int precision : new int[] {4, 5, 10, 12, 18}) {
            FoldAggregate<String, Long> function = FoldAggregates.hll(precision, member -> member);
            compare(function, random -> random.nextInt(20) == 0 ? null : "member " + random.nextInt(5_000));
            // Members of every length, since the hash has a way for each.
            compare(function, random -> "x".repeat(random.nextInt(1_500)) + (char) random.nextInt(0xd000));
        }
        FoldAggregate<Integer, Long> function = FoldAggregates.hll(member -> member);
        assertEquals("hll:12", function.spec());
        for (int distinct : new int[] {0, 1, 10, 100, 1_000, 30_000}) {
            FoldValue value = function.createAccumulator();
            for (int number = 0; number < 2 * distinct; number++) {
                value = function.add(number % distinct, value);
            }
            assertEquals(distinct, function.getResult(value), 0.05 * distinct);
        }
        FoldAggregate<Object, Long> ofObjects = FoldAggregates.hll(member -> member);
        assertEquals(1, result(ofObjects, List.of(7, 7L, "7", "7".getBytes(UTF_8))));
        assertThrows(IllegalArgumentException.class, () -> result(ofObjects, List.of(7.5)));
        assertThrows(IllegalArgumentException.class, () -> FoldAggregates.hll(19, member -> member));
    }

    @Test
    void quantiles() {
        for (double error : new double[] {0.01, 0.0001, 0.001, 0.025, 0.5}) {
            double[] shares = {0, 0.01, 0.07, 0.25, 0.5, 0.9, 0.99, 1};
            FoldAggregate<Double, double[]> function =
                    FoldAggregates.quantilesWithin(error, number -> number, shares);
            compare(function, FoldAggregatesTest::anyDoubleOrNone);
            compare(function, FoldAggregatesTest::anyDouble)
                    .values()
                    .forEach(of -> check(result(function, of), shares, error, of));
        }
        FoldAggregate<Double, double[]> function = FoldAggregates.quantiles(number -> number, 0.5);
        assertEquals("quantiles", function.spec());
        assertTrue(Double.isNaN(result(function, List.of(Double.NaN))[0]));
        assertThrows(
                IllegalArgumentException.class, () -> FoldAggregates.quantiles((Double n) -> n, 1.5));
    }

    private static void check(double[] found, double[] shares, double error, List<Double> of) {
        double[] sorted = DoubleStream.of(of.stream().mapToDouble(n -> n).toArray()).sorted().toArray();
        for (int at = 0; at < shares.length; at++) {
            BigDecimal passed = BigDecimal.valueOf(shares[at]).multiply(BigDecimal.valueOf(of.size()));
            int rank = Math.max(passed.setScale(0, RoundingMode.CEILING).intValue(), 1) - 1;
            double exact = sorted[rank];
            assertEquals(exact, found[at], Math.abs(exact) * error * 1.0001, "quantile " + shares[at]);
        }
    }

    @Test
    void rankings() {
        for (int kept : new int[] {1, 3, 10, 100}) {
            FoldAggregate<Tuple2<Long, String>, Ranked[]> function =
                    FoldAggregates.topK(kept, pair -> pair.f0, pair -> pair.f1);
            Map<Integer, List<Tuple2<Long, String>>> all =
                    compare(
                            function,
                            random ->
                                    Tuple2.of(
                                            anyLong(random),
                                            random.nextInt(20) == 0 ? null : "é" + random.nextInt(300)));
            for (List<Tuple2<Long, String>> of : all.values()) {
                List<String> shown =
                        Arrays.stream(result(function, of)).map(Ranked::toString).collect(Collectors.toList());
                assertEquals(best(kept, of), shown);
            }
            FoldAggregate<Tuple2<Double, String>, RankedDouble[]> ofDoubles =
                    FoldAggregates.topKDouble(kept, pair -> pair.f0, pair -> pair.f1);
            compare(ofDoubles, random -> Tuple2.of(anyDoubleOrNone(random), "m" + random.nextInt(300)));
        }
        FoldAggregate<Tuple2<Double, String>, RankedDouble[]> function =
                FoldAggregates.topKDouble(2, pair -> pair.f0, pair -> pair.f1);
        RankedDouble[] two =
                result(function, List.of(Tuple2.of(Double.NaN, "a"), Tuple2.of(0.5, "b"), Tuple2.of(1.5, "c")));
        assertEquals("[c 1.5, b 0.5]", Arrays.toString(two));
    }

    private static List<String> best(int kept, List<Tuple2<Long, String>> of) {
        Set<String> seen = new HashSet<>();
        return of.stream()
                .filter(pair -> pair.f1 != null)
                .sorted(
                        Comparator.comparing((Tuple2<Long, String> pair) -> pair.f0)
                                .reversed()
                                .thenComparing(pair -> pair.f1))
                .filter(pair -> seen.add(pair.f1))
                .limit(kept)
                .map(pair -> pair.f1 + " " + pair.f0)
                .collect(Collectors.toList());
    }

    private static <IN> void checkTypes(
            FoldAggregate<IN, ?> function, TypeInformation<IN> in, TypeInformation<?> out) throws Exception {
        TypeInformation<FoldValue> accumulator =
                TypeExtractor.getAggregateFunctionAccumulatorType(function, in, null, false);
        assertEquals(
                FoldValueSerializer.INSTANCE,
                accumulator.createSerializer(new SerializerConfigImpl()));
        assertEquals(out, TypeExtractor.getAggregateFunctionReturnType(function, in, null, false));
        assertEquals(function.spec(), InstantiationUtil.clone(function).spec());
    }

    @Test
    void flinkFindsTheTypesAndCopiesTheFunctions() throws Exception {
        checkTypes(FoldAggregates.count(), Types.LONG, BasicTypeInfo.LONG_TYPE_INFO);
        checkTypes(FoldAggregates.<Double>sumDouble(n -> n), Types.DOUBLE, BasicTypeInfo.DOUBLE_TYPE_INFO);
        checkTypes(FoldAggregates.<String>hll(m -> m), Types.STRING, BasicTypeInfo.LONG_TYPE_INFO);
        checkTypes(
                FoldAggregates.<Double>quantiles(n -> n, 0.5),
                Types.DOUBLE,
                PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO);
        TypeInformation<?> stats = TypeInformation.of(Stats.class);
        assertTrue(stats instanceof PojoTypeInfo, "and not by Kryo");
        checkTypes(FoldAggregates.<Double>stats(n -> n), Types.DOUBLE, stats);
        for (Class<?> ranked : List.of(Ranked.class, RankedDouble.class)) {
            assertTrue(TypeInformation.of(ranked) instanceof PojoTypeInfo);
        }
        checkTypes(
                FoldAggregates.<String>topK(3, m -> 1, m -> m),
                Types.STRING,
                ObjectArrayTypeInfo.getInfoFor(TypeInformation.of(Ranked.class)));
    }
}
