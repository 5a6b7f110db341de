import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Prints every committed record of some topics, from the first to the end as it is at the start: one line of JSON each. */
public final class LogDump {
  public static void main(String[] args) {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("isolation.level", "read_committed");
    settings.put("enable.auto.commit", "false");
    settings.put("auto.offset.reset", "earliest");
    settings.put("allow.auto.create.topics", "false");
    StringBuilder out = new StringBuilder();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions = new ArrayList<>();
      for (int i = 1; i < args.length; i++) {
        for (var info : consumer.partitionsFor(args[i])) partitions.add(new TopicPartition(args[i], info.partition()));
      }
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long deadline = System.currentTimeMillis() + 60_000;
      while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
        if (System.currentTimeMillis() > deadline) throw new IllegalStateException("the end was not reached in 60 s");
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) print(out, record);
      }
    }
    System.out.print(out);
  }

  private static void print(StringBuilder out, ConsumerRecord<byte[], byte[]> record) {
    out.append("{\"topic\":\"").append(record.topic()).append("\",\"partition\":").append(record.partition());
    out.append(",\"offset\":").append(record.offset()).append(",\"key\":").append(hex(record.key()));
    out.append(",\"value\":").append(hex(record.value())).append(",\"headers\":[");
    String comma = "";
    for (Header header : record.headers()) {
      out.append(comma).append("[").append(hex(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)));
      out.append(",").append(hex(header.value())).append("]");
      comma = ",";
    }
    out.append("]}\n");
  }

  private static String hex(byte[] bytes) {
    return bytes == null ? "null" : "\"" + HexFormat.of().formatHex(bytes) + "\"";
  }
}
