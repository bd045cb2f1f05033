import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints the name of every setting that Kafka's own classes define, as "level name" lines. Arguments are level=class; a class
 * that this version does not have is passed over. Names are those of every static ConfigDef that the class holds or returns.
 */
public class Settings {
    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] parts = argument.split("=");
            for (String name : names(parts[1])) {
                System.out.println(parts[0] + " " + name);
            }
        }
    }

    private static TreeSet<String> names(String className) throws Exception {
        TreeSet<String> found = new TreeSet<>();
        Class<?> type;
        try {
            type = Class.forName(className);
        } catch (ClassNotFoundException absent) {
            return found;
        }
        for (; type != null && type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (ConfigDef.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    add(found, Modifier.isStatic(field.getModifiers()) ? field.get(null) : ofObject(type, field));
                }
            }
            for (Method method : type.getDeclaredMethods()) {
                boolean plain = Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0;
                if (plain && ConfigDef.class.isAssignableFrom(method.getReturnType())) {
                    method.setAccessible(true);
                    add(found, method.invoke(null));
                }
            }
        }
        return found;
    }

    /** Returns the value of a field of a Scala object, which is the static MODULE$ of its class; null in any other class. */
    private static Object ofObject(Class<?> type, Field field) throws Exception {
        try {
            return field.get(type.getField("MODULE$").get(null));
        } catch (NoSuchFieldException notAnObject) {
            return null;
        }
    }

    private static void add(TreeSet<String> found, Object definition) {
        if (definition != null) {
            found.addAll(((ConfigDef) definition).names());
        }
    }
}
