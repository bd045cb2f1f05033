import java.io.FileInputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What Kafka's console tools cannot be made to do: `Client.java DOES PROPERTIES TOPIC [NUMBER]`, until it is killed.
 * polls: reads a topic, logs what poll() throws and polls again. ledger: writes in transactions that are open for NUMBER
 * milliseconds, and ends with the first that fails. dated: sends a record a second whose time is NUMBER milliseconds ago, and
 * logs what fails.
 */
public class Client {
    private static final Logger LOG = LoggerFactory.getLogger("com.example.shop.Client");

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (InputStream file = new FileInputStream(arguments[1])) {
            settings.load(file);
        }
        int number = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 0;
        switch (arguments[0]) {
            case "polls" -> polls(settings, arguments[2]);
            case "ledger" -> ledger(settings, arguments[2], number);
            case "dated" -> dated(settings, arguments[2], number);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static void polls(Properties settings, String topic) throws InterruptedException {
        try (KafkaConsumer<Object, Object> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (true) {
                try {
                    consumer.poll(Duration.ofSeconds(1));
                } catch (KafkaException wrong) {
                    LOG.error("Cannot read {}", topic, wrong);
                    Thread.sleep(1000);
                }
            }
        }
    }

    private static void ledger(Properties settings, String topic, int millis) throws InterruptedException {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            while (true) {
                producer.beginTransaction();
                for (int i = 0; i < 5; i++) {
                    producer.send(new ProducerRecord<>(topic, "entry " + i));
                }
                producer.flush();
                Thread.sleep(millis);
                producer.commitTransaction();
            }
        } catch (KafkaException wrong) {
            LOG.error("The ledger is closed", wrong);
        }
    }

    private static void dated(Properties settings, String topic, int millis) throws InterruptedException {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            while (true) {
                long stamp = System.currentTimeMillis() - millis;
                producer.send(new ProducerRecord<>(topic, null, stamp, null, "reading"), (where, wrong) -> told(topic, wrong));
                Thread.sleep(1000);
            }
        }
    }

    private static void told(String topic, Exception wrong) {
        if (wrong != null) {
            LOG.error("Cannot send to {}", topic, wrong);
        }
    }
}
