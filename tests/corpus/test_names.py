"""No posted log names a person's address, folder or machine: what is replaced is replaced by names that belong to nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_network

from tests.corpus.cases import HERE, cases

ADDRESS = re.compile(r"(?<![\d.\w-])(?:[1-9]\d{1,2}|\d)(?:\.(?:[1-9]\d{0,2}|0)){3}(?![\d.])")
HOME = re.compile(r"(?:/home/|/Users/|C:\\+Users\\+)([\w.-]+)")
MAIL = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+(?:com|net|org|io|de|fr|ru|cn|co|uk|br|in|eu)\b", re.IGNORECASE)
NOBODY = (ip_network("203.0.113.0/24"), ip_network("198.51.100.0/24"), ip_network("192.0.2.0/24"), ip_network("100.64.0.0/10"))
BUILDS = {"node_modules", "src", ".confluent", "PycharmProjects"}  # folders of a build whose home was cut off
ACCOUNTS = BUILDS | {
    "DEVX",
    "SOMEBODY",
    "app",
    "app0",
    "dev",
    "ec2-user",
    "hadoop",
    "jdoe",
    "kafka",
    "kafkacluster",
    "me",
    "node",
}
ACCOUNTS |= {"posthog", "runner", "shop", "somebody", "travis", "ubuntu", "user"}
SOFTWARE = {"containers@bitnami.com", "headless_edge-service.1.q31xs2v2sfab@node5.docker.com"}  # an image's own banner, a task
VERSIONS_BELOW = 20  # of the first number: 3.0.0.4 is a version


def test_no_address_of_a_person_or_company_is_in_the_corpus() -> None:
    assert {
        case.id: names for case in cases().values() if (HERE / f"{case.rule}.yml").exists() and (names := [*_names(case.log)])
    } == {}


def _names(log: str) -> Iterator[str]:
    yield from (name for name in HOME.findall(log) if name not in ACCOUNTS)
    yield from (
        mail for mail in MAIL.findall(log) if ".example." not in f".{mail.partition('@')[2]}.".lower() and mail not in SOFTWARE
    )
    yield from (text for text in ADDRESS.findall(log) if _is_somebodys(text))


def _is_somebodys(text: str) -> bool:
    numbers = [int(number) for number in text.split(".")]
    if numbers[0] < VERSIONS_BELOW or max(numbers) > 255:
        return False
    address = IPv4Address(text)
    return address.is_global and not address.is_multicast and not any(address in network for network in NOBODY)
