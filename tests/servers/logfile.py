"""What makes a Java program of Kafka's log to a file: log4j 2 from Kafka 4.0 on, log4j 1 before."""

from __future__ import annotations

from pathlib import Path

_LOG4J2 = """
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern={layout}
appender.f.type=File
appender.f.name=F
appender.f.fileName={log}
appender.f.layout.type=PatternLayout
appender.f.layout.pattern={layout}
rootLogger.level=info
rootLogger.appenderRef.f.ref=F
"""
_LOG4J1 = """
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern={layout}
log4j.appender.F=org.apache.log4j.FileAppender
log4j.appender.F.File={log}
log4j.appender.F.layout=org.apache.log4j.PatternLayout
log4j.appender.F.layout.ConversionPattern={layout}
log4j.rootLogger=INFO, F
"""
_ALSO_SHOWN = {_LOG4J2: "rootLogger.appenderRef.c.ref=C\n", _LOG4J1: "log4j.rootLogger=INFO, F, C\n"}


def logging_to(log: Path, layout: str, settings: Path, shown: bool = False) -> list[str]:
    """Return the options that make Java log to `log`, by files that begin with the name `settings`.

    `shown`: to standard output as well. Both libraries are told; the one that is in the jars listens.
    """
    files = {
        _LOG4J2: settings.with_name(f"{settings.name}.log4j2.properties"),
        _LOG4J1: settings.with_name(f"{settings.name}.log4j.properties"),
    }
    for text, file in files.items():
        file.write_text(text.format(log=log, layout=layout) + (_ALSO_SHOWN[text] if shown else ""))
    return [f"-Dlog4j2.configurationFile={files[_LOG4J2]}", f"-Dlog4j.configuration=file:{files[_LOG4J1]}"]
