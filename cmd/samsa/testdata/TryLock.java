import java.io.RandomAccessFile;
import java.nio.channels.FileLock;

/** Tries the lock of a file as Kafka does, says "locked" or "refused", and holds it until standard input ends. */
public class TryLock {
    public static void main(String[] args) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(args[0], "rw")) {
            FileLock lock = file.getChannel().tryLock();
            System.out.println(lock == null ? "refused" : "locked");
            while (System.in.read() >= 0) { }
        }
    }
}
