"""The table of diagnostic codes and their meanings. A code never changes and is never reused; its messages may change."""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """A kind of finding. `value` is (code, one sentence); 6xx are warnings, all others errors.

    1xx: the file and its YAML. 2xx: its structure. 3xx: detections and patterns. 4xx: expressions and templates.
    5xx: rules among each other. 6xx: advice of `rules lint`. 7xx: the configuration.
    8xx: advice on the configuration.
    """

    FILE_UNREADABLE = ("TOC101", "The file or folder cannot be read, or is not UTF-8 text.")
    FILE_TOO_LARGE = ("TOC102", "A rule file is larger than 128 KiB.")
    YAML_SYNTAX = ("TOC103", "The file is not valid YAML.")
    YAML_PLAIN = ("TOC104", "YAML cuts this unquoted text, or takes it for a list or a map.")
    DUPLICATE_KEY = ("TOC105", "A map has the same key twice.")
    ANCHOR = ("TOC106", "Anchors, aliases and merge keys are not part of the rule language.")
    TAG = ("TOC107", "Tags are not part of the rule language.")
    TOO_DEEP = ("TOC108", "The file is nested deeper than 16 levels.")
    NOT_ONE_MAP = ("TOC109", "A file holds exactly one document, and that is a map.")
    KEY_NOT_TEXT = ("TOC110", "A key is a list or a map instead of text.")

    UNKNOWN_KEY = ("TOC201", "The key is not part of the schema.")
    MISSING_KEY = ("TOC202", "A required key is missing.")
    WRONG_KIND = ("TOC203", "The value is of the wrong kind: text, a list or a map is needed there.")
    NOT_ONE_OF = ("TOC204", "The value is not one of the allowed words.")
    BAD_FLAG = ("TOC205", "A yes-or-no value is neither true nor false.")
    BAD_NUMBER = ("TOC206", "The value is not a number of at most 19 digits.")
    BAD_DURATION = ("TOC207", "The value is not a duration such as 500ms, 30s, 10m, 2h or 3d, of at most 3650d.")
    BAD_VERSIONS = ("TOC208", "The value is not a version range such as >=2.1,<4.1.")
    BAD_ID = ("TOC209", "An id or name has characters other than lower-case letters, digits and dashes.")
    ID_NOT_FILE_NAME = ("TOC210", "The id of a rule differs from its file name.")
    DETECTION_OR_CORRELATION = ("TOC211", "A rule has either a detection or a correlation.")
    EMPTY = ("TOC212", "The value is empty.")
    TEST_SHAPE = ("TOC213", "A test needs `log` or `logs`, and either `fires` or `silent: true`; or it is a `timeline`.")
    TIMELINE = ("TOC214", "A timeline has a line that is not a step, or expects nothing.")

    UNKNOWN_FIELD = ("TOC301", "The field is not one that events have.")
    UNKNOWN_MODIFIER = ("TOC302", "The modifier does not exist, or excludes another one.")
    PATTERN_TOO_LONG = ("TOC303", "A pattern is longer than 4 KiB.")
    PATTERN_EMPTY = ("TOC304", "A pattern has no text at all and would match every line.")
    REGEX = ("TOC305", "RE2 does not accept the regular expression.")
    TOO_MANY_COMBINATIONS = ("TOC306", "The lists of one item multiply to more than 256 combinations.")
    MISSING_HOLE = ("TOC307", "A pattern of a component lacks its hole: {member} or {version}.")
    EXAMPLE_FAILS = ("TOC308", "An example of a format or dialect does not match its expression.")
    NAME_CLASH = ("TOC309", "One name is used for two things.")
    UNKNOWN_TERM = ("TOC310", "No file of terms defines a term of this name.")
    NOT_LINEAR = (
        "TOC311",
        "The regular expression may need more than linear time: look-around, a back reference and the like.",
    )
    SPELLING = ("TOC312", "A spelling of settings does not show where their name goes, or in a form that does not exist.")
    UNSPELLABLE = ("TOC313", "A dialect names a setting that Kafka lacks at the levels that the dialect spells.")

    EXPRESSION_SYNTAX = ("TOC401", "The expression cannot be read.")
    EXPRESSION_TOO_DEEP = ("TOC402", "The expression is nested deeper than 32 levels.")
    UNKNOWN_NAME = ("TOC403", "The expression uses a name that nothing defines.")
    UNKNOWN_FUNCTION = ("TOC404", "The expression calls a function that does not exist.")
    WRONG_ARGUMENTS = ("TOC405", "A function is called with too few or too many arguments.")
    NUMBER_TOO_LONG = ("TOC406", "A number in an expression has more than 19 digits.")
    NO_SUCH_ITEMS = ("TOC407", "No detection item has a name like this.")
    UNFILLED_HOLE = ("TOC408", "No capture, label or context value fills a hole of a template.")

    DUPLICATE_ID = ("TOC501", "Two files define the same id.")
    UNKNOWN_RULE = ("TOC502", "A key names a rule or component that does not exist.")
    EXPLAINS_CYCLE = ("TOC503", "Rules explain each other in a circle.")
    EXPLAINS_WITHOUT_KEY = ("TOC504", "An explanation joins on the cluster alone.")
    UNKNOWN_ENTITY = ("TOC505", "A key names neither a capture nor a known label.")
    CORRELATION_SHAPE = ("TOC506", "A correlation lacks a key that its type needs, or has one that its type does not take.")
    COUNTS_CYCLE = ("TOC507", "Correlations count each other in a circle.")
    UNLESS_CHAIN = ("TOC508", "The `unless` of a component names a component that has an `unless` itself.")

    NO_FIRING_TEST = ("TOC601", "The rule has no test in which it fires.")
    NO_SILENT_TEST = ("TOC602", "The rule has no near miss: a test in which it stays silent.")
    PATTERN_IS_SAMPLE = ("TOC603", "A pattern repeats its own sample: it has numbers instead of holes.")
    NO_LITERAL = ("TOC604", "A pattern has no literal word of three characters, so it is tried on every line.")
    UNDECLARED_CHANGE = ("TOC605", "A command changes something without saying changes_state: true.")
    LOOKS_LIKE_HOLE = ("TOC606", "Braces look like a hole but are taken literally.")
    SAMPLE_CONSTANT = ("TOC607", "A pattern holds a name, a host or an id that only its own sample has.")
    SHADOWED = ("TOC608", "Another rule fires on every line that this one fires on, and neither explains the other.")
    UNREACHABLE = ("TOC609", "A correlation, or a rule in it, can never count.")
    NEVER_FILLED = ("TOC610", "No capture fills a value of a command or a setting.")
    UNKNOWN_SETTING = ("TOC611", "Kafka has no setting of this name at this level.")
    UNFINISHED = ("TOC612", "A text of the draft that `rules new` wrote was not replaced.")
    DEPRECATED = ("TOC613", "A rule is deprecated and names no replacement, or another rule still needs it.")
    NOTHING_SURE = ("TOC614", "No text is certain to occur in every event that the rule fires on, so every line must be read.")
    NO_STEP_FITS = ("TOC615", "Every step of a fix has a `when`, and none applies when nothing was captured.")
    QUOTABLE = ("TOC616", "An alert is excused or resolved by a text that any process may print.")
    UNUSED_TERM = ("TOC617", "No rule uses this term.")
    NO_CASES = ("TOC618", "A cause lists several causes, and no `cases` tell them apart.")
    CASE_UNTESTED = ("TOC619", "No test shows this case of the runbook.")
    NOT_A_NAME = ("TOC620", "A command that takes the name of a host may be given its port or a URL.")
    NO_COMPANION = ("TOC621", "A setting is advised without another one that it does nothing, or is refused, without.")
    TRANSLATION = ("TOC622", "A text in another language does not say what the English one says.")
    STATES_ABSENCE = ("TOC623", "Words in place of a missing value only state that it is missing.")

    NOT_AVAILABLE = ("TOC701", "The configuration asks for something that this version does not have.")
    UNKNOWN_RECEIVER = ("TOC702", "A route or a fallback names a receiver that does not exist.")
    BAD_LABEL = ("TOC703", "A label of a source cannot be used.")
    BAD_START = ("TOC704", "The start of a source is not a time at which it can start.")
    BAD_TIMEZONE = ("TOC705", "The time zone is not one of the IANA names.")
    BAD_MATCHER = ("TOC706", "A matcher is not of the form label, operator, value.")
    ROUTE_SHAPE = ("TOC707", "The route has a key that only its branches can have.")
    RECEIVER_SHAPE = ("TOC708", "A receiver lacks a key that its type needs, or has keys that exclude each other.")
    DUPLICATE_RECEIVER = ("TOC709", "Two receivers have the same name.")
    BAD_SECRET = ("TOC710", "A secret is written into the file instead of a reference to it.")
    BAD_ADDRESS = ("TOC711", "The address is not one that messages may be sent to.")
    BAD_OPTION = ("TOC712", "An option of a source cannot be used.")
    BAD_LISTEN = ("TOC713", "The pages cannot listen on an address like this.")
    BAD_PUBLIC_URL = ("TOC714", "The public address of the pages is not scheme and host.")
    BAD_KIBANA = ("TOC715", "The settings of Kibana do not give working links.")
    BAD_HOURS = ("TOC716", "A part of a time interval is not a time, or is a range that ends before it begins.")
    UNKNOWN_INTERVAL = ("TOC717", "A route names a time interval that does not exist.")
    DUPLICATE_INTERVAL = ("TOC718", "Two time intervals have the same name.")
    FALLBACK_CYCLE = ("TOC719", "Receivers are each other's fallback in a circle.")
    BAD_REDACTION = ("TOC721", "A pattern for redaction cannot be used.")
    BAD_STORE = ("TOC722", "The incident store is not at an address like this.")
    BAD_AUTH = ("TOC730", "The pages cannot tell by these settings who may see and change them.")

    UNKNOWN_LABEL = ("TOC801", "A matcher names a label that no incident has.")
    UNKNOWN_VALUE = ("TOC802", "A matcher names a value that its label never has.")
    UNREACHED_ROUTE = ("TOC803", "A route is never reached.")
    IDLE_CONTINUE = ("TOC804", "`continue` has no effect on a route.")
    UNUSED_RECEIVER = ("TOC805", "No route and no fallback leads to a receiver.")
    UNUSED_INTERVAL = ("TOC806", "No route uses a time interval.")
    UNUSED_CLUSTER = ("TOC807", "No source belongs to a cluster.")

    @property
    def id(self) -> str:
        """The stable code, e.g. TOC101."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """One sentence: what a finding of this kind means."""
        return self.value[1]

    @property
    def is_warning(self) -> bool:
        """Whether the finding is advice, which does not stop loading."""
        return self.id.startswith(("TOC6", "TOC8"))
