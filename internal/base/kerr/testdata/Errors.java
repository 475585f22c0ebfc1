// Prints Kafka's error codes: code, name, whether retriable.
public class Errors {
    public static void main(String[] args) {
        for (var e : org.apache.kafka.common.protocol.Errors.values()) {
            System.out.println(e.code() + " " + e.name() + " "
                + (e.exception() instanceof org.apache.kafka.common.errors.RetriableException));
        }
    }
}
