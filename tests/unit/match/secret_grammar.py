"""A grammar of texts that hold a secret, and one of texts that hold none but look as if they did."""

from __future__ import annotations

from hypothesis import strategies as st

PASSWORD_NAMES = (
    "password", "Password", "PASSWORD", "passwd", "pwd", "passphrase", "passcode", "db.password", "database.password",
    "ssl.keystore.password", "ssl.key.password", "spring.datasource.password", "connection.password", "dbPassword", "user_password",
    "KAFKA_SASL_PASSWORD", "PGPASSWORD", "MYSQL_ROOT_PASSWORD", "new_password", "password_confirmation", "passwordConfirm", "db_pass",
    "비밀번호", "패스워드", "암호", "密码", "密碼", "パスワード", "contraseña", "Passwort", "Kennwort", "mot de passe", "пароль", "ПАРОЛЬ", "senha",
    "hasło", "wachtwoord", "pass\u200bword", "p\u00adassword", "ｐａｓｓｗｏｒｄ",
)  # fmt: skip
SECRET_NAMES = (
    "client_secret", "clientSecret", "sasl.oauthbearer.client.secret", "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "secretKey",
    "AccountKey", "SharedAccessKey", "accessKey", "api_key", "apiKey", "API-KEY", "X-Api-Key", "apikey", "api_secret", "private_key",
    "encryption_key", "license_key", "NEW_RELIC_LICENSE_KEY", "DD_API_KEY", "DD_APP_KEY", "storage_key", "signing_key", "hmac", "signature",
    "SECRET_KEY_BASE", "CONFLUENT_CLOUD_API_SECRET", "salt", "storedKey", "serverKey", "credentials", "credential",
)  # fmt: skip
TOKEN_NAMES = (
    "token", "access_token", "accessToken", "refresh_token", "id_token", "sessionToken", "X-Vault-Token", "X-Auth-Token", "GITHUB_TOKEN",
    "auth.token", "PRIVATE-TOKEN", "bearer_token",
)  # fmt: skip
NAMES = PASSWORD_NAMES + SECRET_NAMES + TOKEN_NAMES

# around a name and a value
NAMED = (
    "{name}={secret}",
    "{name} = {secret}",
    "{name}: {secret}",
    "{name}:{secret}",
    "{name} => {secret}",
    '{name}="{secret}"',
    "{name}='{secret}'",
    '{name}: "{secret}"',
    '{{"{name}":"{secret}"}}',
    '{{"a":1,"{name}": "{secret}","b":2}}',
    '{{\\"{name}\\":\\"{secret}\\"}}',
    '{{\\\\\\"{name}\\\\\\":\\\\\\"{secret}\\\\\\"}}',
    "{{'{name}': '{secret}'}}",
    "{{user=alice, {name}={secret}}}",
    "{{{name}={secret}, topic=orders}}",
    "Foo(user=alice, {name}={secret})",
    "user=alice;{name}={secret};Encrypt=true",
    "https://h/path?user=alice&{name}={secret}&x=1",
    "jdbc:postgresql://db:5432/x?user=alice&{name}={secret}",
    "jdbc:sqlserver://db:1433;user=sa;{name}={secret}",
    "<{name}>{secret}</{name}>",
    '<{name} type="plain">{secret}</{name}>',
    "<{name}><![CDATA[{secret}]]></{name}>",
    "&lt;{name}&gt;{secret}&lt;/{name}&gt;",
    '<user name="a" {name}="{secret}"/>',
    '<property name="{name}" value="{secret}"/>',
    "<name>{name}</name><value>{secret}</value>",
    '<entry key="{name}">{secret}</entry>',
    "{name}:\n  {secret}",
    "{name}: |\n    {secret}\n",
    "- name: {name}\n  value: {secret}\n",
    "--{name}={secret}",
    "--{name} {secret} --topic orders",
    "&quot;{name}&quot;:&quot;{secret}&quot;",
    "{name}%3D{secret}%26x%3D1",
    "\\u0022{name}\\u0022:\\u0022{secret}\\u0022",
    "config: {{{name}: {secret}, retries: 3}}",
    "{name}[0]={secret}",
    "Caused by: x.y.ZException: {name}={secret}",
    "AuthenticationException: {name}={secret}",
    "export {name}={secret}",
    "set '{name}' to x; {name}={secret} failed for topic orders",
)

# a secret by itself, in a place that gives it away
PLACED = (
    "https://alice:{secret}@registry:8081/subjects",
    "https://u:p@{secret}@h/",
    "amqp://alice:{secret}/y@z@mq:5672/v",
    "amqp://alice:x/{secret}@mq:5672/v",
    "redis://:{secret}@cache:6379/0",
    "mongodb+srv://{secret}@cluster0.mongodb.net",
    "mongodb://alice:{secret}@a:27017,b:27017/x?replicaSet=r",
    "jdbc:mysql://root:{secret}@db:3306/shop",
    "jdbc:oracle:thin:scott/{secret}@db:1521:x",
    'jdbc:oracle:thin:scott/"{secret}"@//db:1521/x',
    "sqlplus scott/{secret}@db",
    "schema.registry.basic.auth.user.info=alice:{secret}",
    "basic.auth.user.info = alice:{secret}",
    'auth.user.info: "alice:{secret}"',
    "https://hooks.slack.com/services/T000/B000/{secret}",
    "https://discord.com/api/webhooks/123456789/{secret}",
    "https://acme.webhook.office.com/webhookb2/{secret}/IncomingWebhook/1/2",
    "https://chat.googleapis.com/v1/spaces/A/messages?key=abc&token={secret}",
    "https://api.telegram.org/bot123:{secret}/sendMessage",
    "https://acct.blob.core.windows.net/c/b?sv=2020-08-04&sig={secret}&se=2022",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature={secret}",
    "https://storage.googleapis.com/b/o?X-Goog-Signature={secret}&x=1",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={secret};EndpointSuffix=core.windows.net",
    "Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={secret}",
    "SharedAccessSignature sr=x&sig={secret}&se=1&skn=Root",
    "Server=tcp:db,1433;Database=x;User ID=sa;Password={secret};Encrypt=true",
    "Driver={{ODBC}};Server=h;UID=sa;PWD={{{secret};x}};",
    "curl -u alice:{secret} https://h/",
    'curl -u "alice:{secret}" https://h/',
    "curl --user alice:{secret} https://h/",
    "mysql -uroot -p{secret} -h db",
    "mysqldump -u root -p{secret} shop",
    "sshpass -p {secret} ssh h",
    "redis-cli -h h -a {secret} ping",
    "ldapsearch -D cn=a -w {secret} -b x",
    "docker login -u a -p {secret} registry",
    "keytool -list -storepass {secret} -keystore k",
    "openssl pkcs12 -passin pass:{secret} -in k",
    "ALTER USER a IDENTIFIED BY '{secret}'",
    "CREATE USER a WITH PASSWORD '{secret}'",
    "kafka-configs.sh --alter --add-config SCRAM-SHA-512=[iterations=8192,password={secret}]",
    "Authorization: Bearer {secret}",
    "authorization: Basic {secret}",
    "Proxy-Authorization: Negotiate {secret}",
    '{{"headers":{{"authorization":["Bearer {secret}"]}}}}',
    "curl -H 'Authorization: Bearer {secret}' https://h/",
    'Authorization: Digest username="Mufasa", realm="x", response="{secret}"',
    "Authorization: AWS4-HMAC-SHA256 Credential=x/20220101/us/s3/aws4_request, SignedHeaders=host, Signature={secret}",
    "Set-Cookie: JSESSIONID={secret}; Path=/; HttpOnly",
    "Cookie: a=b; sid={secret}",
    '"cookie": "sid={secret}; a=b"',
    "SCRAM: n=alice,salt=c2FsdA==,iterations=4096,storedKey={secret}",
    "n=alice,r=fyko,storedKey=x,serverKey={secret}",
    'PlainLoginModule required username="kafka" password="{secret}";',
    'PlainLoginModule required username="kafka" password="abc;{secret}";',
    'sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="k" password="{secret}";',
    '"sasl.jaas.config":"org.apache.kafka.common.security.scram.ScramLoginModule required username=\\"k\\" password=\\"a;{secret}\\";"',
    "-----BEGIN PRIVATE KEY-----\nMIIE{secret}AAAA\nBBBB{secret}==\n-----END PRIVATE KEY-----",
    "ssl.keystore.key=-----BEGIN ENCRYPTED PRIVATE KEY-----\\nMIIE{secret}\\nBBBB==\\n-----END ENCRYPTED PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE{secret}AAAA\nBBBB",
    "Password is: {secret}",
    "the password is {secret}",
    "Invalid password: {secret}",
    "password=abc;{secret}",
    "비밀번호는 {secret}",
    "key ASIA0123456789ABCDEF and aws_secret_access_key {secret}/K7MDENG/bPxRfiCYEXAMPLEK9Y",
    "github_pat_{secret}",
    "ghp_{secret}0123456789",
    "glpat-{secret}",
    "xoxb-1234-{secret}",
    "sk_live_{secret}",
    "dop_v1_{secret}",
    "npm_{secret}0123456789ab",
    "hf_{secret}abcdef",
    "dapi{secret}0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJ{secret}.c2lnbmF0dXJl",
    "AIzaSy{secret}0123456789abcdefghij",
    "LTAI{secret}0123",
    "SG.{secret}0123.{secret}4567",
    "NRAK-{secret}0123",
    "user jane.{secret}@example.com not found",
)  # fmt: skip

_LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"


@st.composite
def secrets(draw: st.DrawFn) -> str:
    """A secret of letters and digits: `ZQ` marks it, so that no other text holds it by chance."""
    return "ZQ7" + draw(st.text(_LETTERS + "23456789", min_size=5, max_size=24))


@st.composite
def telling(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and the secret in it."""
    secret = draw(secrets())
    text = draw(st.one_of(st.sampled_from(PLACED), st.sampled_from(NAMED)))
    told = text.format(name=draw(st.sampled_from(NAMES)), secret=secret)
    return draw(st.sampled_from(("{}", "{}\n\tat a.b.C.d(C.java:1)", "Error: {}", "[x] {} (a.b.C)"))).replace(
        "{}", told
    ), secret


TOPICS = (
    "secret-events", "user.password.changed", "SECRET_TOPIC", "password-reset", "token-refresh", "api-key-rotation", "credentials.v1",
    "orders", "access_key_audit", "__consumer_offsets", "cookie-consent", "pii.user-secrets", "auth", "sk-orders-and-payments-2024-events",
)  # fmt: skip
HARMLESS = (
    "[Consumer clientId=c-1, groupId=g] Error while fetching metadata with correlation id 3 : {{{topic}=LEADER_NOT_AVAILABLE}}",
    "[Consumer clientId=c-1, groupId=g] Resetting offset for partition {topic}-0 to position FetchPosition{{offset={number}, offsetEpoch=Optional.empty}}",
    "Error for partition {topic}-0: NOT_LEADER_OR_FOLLOWER",
    "Topic {topic} not present in metadata after 60000 ms.",
    "Not authorized to access topics: [{topic}]",
    "committed offsets {{{topic}-0=OffsetAndMetadata{{offset={number}, leaderEpoch=3, metadata=''}}}}",
    "Shrinking ISR of {topic}-0 from 1,2,3 to 1. Leader: (highWatermark: {number}, endOffset: {number})",
    "Created log for partition {topic}-0 in /var/lib/kafka/data/{topic}-0 with properties {{}}",
    "Deleting segment /data/{topic}-0/00000000000{small}.log.deleted",
    "topicId=Fz0pUcM4R_qYfHjLxJtGVg topic={topic} directory id K1a2B3c4D5e6F7g8H9i0Jw",
    "client token-service-{small} (uuid 123e4567-e89b-12d3-a456-426614174000) joined group {topic}",
    "Unknown config 'sasl.password'",
    "The configuration 'ssl.keystore.password' was supplied but isn't a known config.",
    "Invalid password",
    "password is incorrect",
    "Your password is expired",
    "the token is expired and the secret is missing",
    "Authentication failed: Invalid username or password",
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    "Failed to decrypt password: Given final block not properly padded",
    "keystore password was incorrect",
    "Unable to load credentials: connection refused",
    "Loaded key store with path /etc/kafka/secrets/kafka.keystore.jks in PKCS12 format",
    "security.protocol = SASL_SSL sasl.mechanism = PLAIN ssl.key.password = null",
    "\tssl.keystore.password = [hidden]\n\tssl.keystore.type = JKS\n\tssl.truststore.password = null",
    "\tssl.key.password = \n\tssl.keystore.type = JKS",
    "RequestHeader(apiKey=OFFSET_COMMIT, apiVersion=8, clientId=c, correlationId={small})",
    "class org.apache.kafka.common.security.plain.PlainLoginModule could not be found",
    "key.serializer = class org.apache.kafka.common.serialization.StringSerializer",
    "key={small} value={small} partition={topic}-0",
    "delegation.token.max.lifetime.ms = 604800000",
    "password.encoder.iterations = 4096",
    "Unexpected character ('<' (code 60)): unexpected token: END_OBJECT",
    "Access denied for user 'a'@'h' (using password: YES)",
    "listeners = SASL_SSL://kafka-1.example.com:9093,PLAINTEXT://:9092",
    "controller.quorum.voters = 1@kafka-1.example.com:9093,2@kafka-2.example.com:9093",
    "principal User:CN=alice,OU=x is not allowed; kafka/broker-1@EXAMPLE.COM",
    "offset {number} timestamp 1650000000000 epoch 1650000000000123456 bytes=4111111111111111",
    "docker run --user 1000:1000 -p 9092:9092 image",
    "Secret kafka/main-cluster-ca does not exist",
    "https://connect:8083/connectors/{topic}/status?expand=info",
    "ssl.keystore.location=/etc/secrets/keystore.jks sasl.login.class = null",
    "io.confluent.common.config.ConfigException: Missing required configuration \"sasl.password\" which has no default value.",
)  # fmt: skip


@st.composite
def harmless(draw: st.DrawFn) -> str:
    """A text without any secret."""
    text = draw(st.sampled_from(HARMLESS))
    number = draw(st.integers(0, 10**13))
    return text.format(topic=draw(st.sampled_from(TOPICS)), number=number, small=draw(st.integers(0, 99999)))
