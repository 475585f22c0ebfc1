// Reads base64 texts, one a line, with java.util.Properties and prints for each: the number of
// keys, then keys and values sorted by key, or "bad". Fields as in Dump.java.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Props {
    static String b64(String s) {
        return "=" + Base64.getEncoder().encodeToString(s.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new StringBuilder();
        for (String line; (line = in.readLine()) != null; ) {
            var p = new Properties();
            try {
                p.load(new ByteArrayInputStream(Base64.getDecoder().decode(line)));
                out.append(b64(String.valueOf(p.size())));
                for (var e : new TreeMap<>(p).entrySet())
                    out.append('\t').append(b64((String) e.getKey())).append('\t').append(b64((String) e.getValue()));
            } catch (IllegalArgumentException e) {
                out.append(b64("bad"));
            }
            out.append('\n');
        }
        System.out.print(out);
    }
}
