package org.folddb.flink;

import java.lang.reflect.Type;
import java.util.Arrays;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfig;
import org.apache.flink.api.common.typeinfo.TypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInfoFactory;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeutils.TypeSerializer;

/** The accumulator of a {@link FoldAggregate}: the bytes of the value of a fold. */
@TypeInfo(FoldValue.Factory.class)
public final class FoldValue {
    private static final byte[] NOTHING = {};

    /** None where nothing was added. */
    byte[] bytes;

    FoldValue() {
        this(NOTHING);
    }

    FoldValue(byte[] bytes) {
        this.bytes = bytes;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof FoldValue && Arrays.equals(bytes, ((FoldValue) other).bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    @Override
    public String toString() {
        return "a value of " + bytes.length + " bytes";
    }

    /** Gives the type of accumulators to Flink. */
    public static final class Factory extends TypeInfoFactory<FoldValue> {
        /** For Flink, which makes one by reflection. */
        public Factory() {}

        @Override
        public TypeInformation<FoldValue> createTypeInfo(
                Type type, Map<String, TypeInformation<?>> parameters) {
            return new Information();
        }
    }

    /** The type of accumulators. */
    private static final class Information extends TypeInformation<FoldValue> {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean isBasicType() {
            return false;
        }

        @Override
        public boolean isTupleType() {
            return false;
        }

        @Override
        public int getArity() {
            return 1;
        }

        @Override
        public int getTotalFields() {
            return 1;
        }

        @Override
        public Class<FoldValue> getTypeClass() {
            return FoldValue.class;
        }

        @Override
        public boolean isKeyType() {
            return false;
        }

        @Override
        public TypeSerializer<FoldValue> createSerializer(SerializerConfig config) {
            return FoldValueSerializer.INSTANCE;
        }

        @Override
        public String toString() {
            return "FoldValue";
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Information;
        }

        @Override
        public int hashCode() {
            return Information.class.hashCode();
        }

        @Override
        public boolean canEqual(Object other) {
            return other instanceof Information;
        }
    }
}
