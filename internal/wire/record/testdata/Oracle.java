// Oracle answers with Kafka's own classes (4.4.0 jars on the class path):
//
//   java -cp "$JARS/*" Oracle.java golden          > golden.txt     batches as Kafka builds them
//   java -cp "$JARS/*" Oracle.java validate c.txt  > validate.txt   what LogValidator does with each case
//   java -cp "$JARS/*" Oracle.java read c.txt                       the records Kafka reads from batches
//
// c.txt is written by TestWriteOracleCases with ORACLE_CASES=c.txt.
import java.nio.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.*;
import org.apache.kafka.storage.internals.log.*;

public class Oracle {
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "golden" -> golden();
            case "validate" -> {
                for (String line : Files.readAllLines(Path.of(args[1])))
                    System.out.println(validate(line.split("\\|", -1)));
            }
            case "read" -> {
                for (String line : Files.readAllLines(Path.of(args[1]))) {
                    String[] f = line.split("\\|", -1);
                    System.out.println(f[0] + "|" + read(f[1]));
                }
            }
        }
    }

    static Compression compression(String name) {
        return switch (name) {
            case "gzip" -> Compression.gzip().build();
            case "snappy" -> Compression.snappy().build();
            case "lz4" -> Compression.lz4().build();
            case "zstd" -> Compression.zstd().build();
            default -> Compression.NONE;
        };
    }

    static byte[] bytes(MemoryRecords r) {
        ByteBuffer b = r.buffer().duplicate();
        byte[] out = new byte[b.remaining()];
        b.get(out);
        return out;
    }

    static void print(String name, MemoryRecords r) {
        System.out.println(name + "|" + HEX.formatHex(bytes(r)));
    }

    // Ten records; the same ones TestGolden expects.
    static void fill(MemoryRecordsBuilder b, boolean old) {
        for (int i = 0; i < 10; i++) {
            byte[] key = i % 3 == 1 ? null : ("key-" + i).getBytes();
            byte[] value = i % 4 == 2 ? null : ("value-" + i + "-").repeat(i * 8).getBytes();
            Header[] headers = i % 5 != 3 || old ? new Header[0]
                : new Header[]{new RecordHeader("h\u00e9", ("x" + i).getBytes()), new RecordHeader("", (byte[]) null)};
            if (old)
                b.append(1000L + i * 7, key, value);
            else
                b.append(1000L + i * 7, key, value, headers);
        }
    }

    static void golden() {
        for (String c : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) 2, compression(c),
                TimestampType.CREATE_TIME, 100L, -1L, 4242L, (short) 3, 2147483640, true, false, 17);
            fill(b, false);
            print("v2-" + c, b.build());
            b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) 2, compression(c),
                TimestampType.LOG_APPEND_TIME, 0L, 5555L);
            fill(b, false);
            print("v2-append-time-" + c, b.build());
            if (c.equals("zstd"))
                continue;
            for (byte magic = 0; magic < 2; magic++) {
                b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), magic, compression(c),
                    magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME, 100L, -1L);
                fill(b, true);
                print("v" + magic + "-" + c, b.build());
            }
            if (!c.equals("none")) {
                b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) 1, compression(c), TimestampType.LOG_APPEND_TIME, 100L, 5555L);
                fill(b, true);
                print("v1-append-time-" + c, b.build());
            }
        }
        print("marker-commit", MemoryRecords.withEndTransactionMarker(9L, 123456789L, 5, 77L, (short) 2,
            new EndTransactionMarker(ControlRecordType.COMMIT, 11)));
        print("marker-abort", MemoryRecords.withEndTransactionMarker(10L, 123456790L, 5, 77L, (short) 2,
            new EndTransactionMarker(ControlRecordType.ABORT, 12)));
        ByteBuffer empty = ByteBuffer.allocate(200);
        DefaultRecordBatch.writeEmptyHeader(empty, (byte) 2, 77L, (short) 2, 40, 500L, 509L, 6, TimestampType.CREATE_TIME, 999L, true, false);
        empty.flip();
        print("empty", MemoryRecords.readableRecords(empty));
    }

    static String read(String hex) {
        StringBuilder out = new StringBuilder();
        try {
            for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex))).batches()) {
                batch.ensureValid();
                for (Record r : batch)
                    out.append(r.offset()).append(',').append(r.timestamp()).append(',').append(r.sequence()).append(',')
                        .append(r.hasKey() ? HEX.formatHex(array(r.key())) : "null").append(',')
                        .append(r.hasValue() ? HEX.formatHex(array(r.value())) : "null").append(',').append(r.headers().length).append(';');
            }
        } catch (Throwable e) {
            return "error " + e;
        }
        return out.toString();
    }

    static byte[] array(ByteBuffer b) {
        byte[] out = new byte[b.remaining()];
        b.duplicate().get(out);
        return out;
    }

    static final LogValidator.MetricsRecorder NO_METRICS = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    };

    // name|hex|target|LogAppendTime?|before|after|compacted?|now|maxBody|maxMessage|version
    static String validate(String[] f) {
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(f[1])));
            long now = Long.parseLong(f[7]);
            ProduceRequest.validateRecords(Short.parseShort(f[10]), records);
            CompressionType source = CompressionType.NONE;
            int valid = 0;
            for (MutableRecordBatch batch : records.batches()) { // as UnifiedLog.analyzeAndValidateRecords
                if (batch.baseOffset() != 0)
                    throw new org.apache.kafka.common.InvalidRecordException("base offset");
                if (batch.sizeInBytes() > Integer.parseInt(f[9]))
                    throw new RecordTooLargeException("size");
                if (!batch.isValid())
                    throw new CorruptRecordException("crc");
                if (batch.compressionType() != CompressionType.NONE)
                    source = batch.compressionType();
                valid += batch.sizeInBytes();
            }
            ByteBuffer trimmed = records.buffer().duplicate();
            trimmed.limit(trimmed.position() + valid);
            Compression target = f[2].equals("producer") ? Compression.of(source).build() : compression(f[2]);
            Time time = (Time) java.lang.reflect.Proxy.newProxyInstance(Oracle.class.getClassLoader(), new Class<?>[]{Time.class},
                (p, m, a) -> m.getName().equals("milliseconds") ? (Object) now : m.getName().equals("nanoseconds") ? (Object) 0L : null);
            LogValidator v = new LogValidator(MemoryRecords.readableRecords(trimmed), new TopicPartition("t", 0), time, source, target,
                f[6].equals("true"), (byte) 2, f[3].equals("true") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                Long.parseLong(f[4]), Long.parseLong(f[5]), 7, AppendOrigin.CLIENT, Integer.parseInt(f[8]));
            PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(500);
            LogValidator.ValidationResult r = v.validateMessagesAndAssignOffsets(offset, NO_METRICS, BufferSupplier.NO_CACHING);
            if (r.messageSizeMaybeChanged())
                for (RecordBatch batch : r.validatedRecords().batches())
                    if (batch.sizeInBytes() > Integer.parseInt(f[9]))
                        throw new RecordTooLargeException("size after");
            byte[] out = bytes(r.validatedRecords());
            // A compressed payload depends on the compressor: its records are compared instead of its bytes.
            boolean same = !r.messageSizeMaybeChanged() || f[2].equals("none");
            return String.join("|", f[0], "ok", same ? HEX.formatHex(out) : HEX.formatHex(out, 0, 8) + HEX.formatHex(out, 12, 17) + HEX.formatHex(out, 21, 61),
                same ? "" : read(HEX.formatHex(out)), Long.toString(r.maxTimestampMs()), Boolean.toString(r.messageSizeMaybeChanged()),
                Long.toString(r.recordValidationStats().temporaryMemoryBytes()), Integer.toString(r.recordValidationStats().numRecordsConverted()),
                Long.toString(offset.value));
        } catch (RecordValidationException e) {
            StringBuilder s = new StringBuilder();
            e.recordErrors().forEach(x -> s.append(x.batchIndex).append('=').append(x.message).append(';'));
            return String.join("|", f[0], Errors.forException(e.invalidException()).name(), e.invalidException().getMessage(), s.toString());
        } catch (Throwable e) {
            return String.join("|", f[0], Errors.forException(e).name(), "", "");
        }
    }
}
